//! Leases and fences: a thread has one writer, and whoever comes too late changes nothing.

pub(super) const CASES: &[(&str, &str)] = &[
    (
        "a thread is leased to one writer",
        "acquire t 100 200 as A
         => granted
         acquire t 100 300 as B
         => held by A until 200
         acquire t 199 300 as B
         => held by A until 200
         acquire u 100 200 as C
         => granted
         threads
         =>
         get t
         => nothing",
    ),
    (
        "a lease ends by time, and the next fence is greater",
        "acquire t 100 200 as A
         => granted
         acquire t 200 300 as B
         => granted
         acquire t 250 400 as C
         => held by B until 300
         acquire t 301 400 as C
         => granted",
    ),
    (
        "a lease that was given back is free",
        "acquire t 100 200 as A
         => granted
         release t A
         => ok
         acquire t 100 200 as B
         => granted
         release t A
         => ok
         acquire t 100 200 as C
         => held by B until 200
         release u B
         => ok
         acquire t 100 200 as C
         => held by B until 200",
    ),
    (
        "a lease can be taken from whoever has it",
        "acquire t 100 200 as A
         => granted
         acquire t 100 300 as B seize
         => granted
         acquire t 100 300 as C
         => held by B until 300
         put t 0.0 full a by=A
         => E_LEASE_LOST
         put t 0.0 full b by=B
         => ok",
    ),
    (
        "a lease is renewed until another one has the thread",
        "acquire t 100 200 as A
         => granted
         renew t A 300
         => yes
         acquire t 250 400 as B
         => held by A until 300
         renew t A 310
         => yes
         acquire t 400 500 as B
         => granted
         renew t A 600
         => no
         acquire t 450 500 as C
         => held by B until 500
         release t B
         => ok
         renew t B 600
         => no
         renew u B 600
         => no",
    ),
    (
        "a lease whose time has passed is good until somebody takes the thread",
        "acquire t 100 200 as A
         => granted
         put t 0.0 full a by=A
         => ok
         renew t A 400
         => yes
         put t 0.1 delta b by=A
         => ok
         acquire t 400 500 as B
         => granted
         put t 0.2 delta late by=A
         => E_LEASE_LOST
         put t 0.2 delta c by=B
         => ok",
    ),
    (
        "a commit with an old fence is refused and changes nothing",
        "acquire t 100 200 as A
         => granted
         put t 0.0 full a by=A
         => ok
         writes t 0.0 1:0=w by=A
         => ok
         acquire t 200 300 as B
         => granted
         put t 0.1 delta late segment=s clears by=A
         => E_LEASE_LOST
         put t 0.0 full late by=A
         => E_LEASE_LOST
         put t/n 0.0 full late by=A
         => E_LEASE_LOST
         put t 1.1 full late by=A
         => E_LEASE_LOST
         get t
         => full 0.0 a, write 1:0 w
         get t/n
         => nothing
         put t 0.0 full again by=B
         => E_STALE
         put t 0.1 delta b clears by=B
         => ok
         get t
         => full 0.0 a, delta 0.1 b",
    ),
    (
        "pending writes with an old fence are refused and change nothing",
        "acquire t 100 200 as A
         => granted
         put t 0.0 full a by=A
         => ok
         writes t 0.0 1:0=w by=A
         => ok
         acquire t 200 300 as B
         => granted
         writes t 0.0 1:0=late by=A
         => E_LEASE_LOST
         writes t 0.0 2:0=x 3:0=y by=A
         => E_LEASE_LOST
         writes t/n 0.0 1:0=late by=A
         => E_LEASE_LOST
         get t
         => full 0.0 a, write 1:0 w
         writes t 0.0 1:0=new by=B
         => ok
         get t
         => full 0.0 a, write 1:0 new",
    ),
    (
        "a fence that was given back stores nothing more",
        "acquire t 100 200 as A
         => granted
         put t 0.0 full a by=A
         => ok
         release t A
         => ok
         put t 0.1 delta late by=A
         => E_LEASE_LOST
         writes t 0.0 1:0=late by=A
         => E_LEASE_LOST
         get t
         => full 0.0 a",
    ),
    (
        "the fence of one thread is none of another",
        "acquire t 100 200 as A
         => granted
         acquire u 100 200 as B
         => granted
         put u 0.0 full a by=A
         => E_LEASE_LOST
         writes u 0.0 1:0=a by=A
         => E_LEASE_LOST
         put t 0.0 full a by=A
         => ok
         put u 0.0 full b by=B
         => ok
         release u A
         => ok
         put u 0.1 delta b by=B
         => ok",
    ),
    (
        "a writer without a lease is not asked for one",
        "acquire t 100 200 as A
         => granted
         put t 0.0 full a
         => ok
         writes t 0.0 1:0=w
         => ok
         get t
         => full 0.0 a, write 1:0 w",
    ),
    (
        "deleting a thread ends its lease, and what its writer still stores does not bring it back",
        "acquire t 100 200 as A
         => granted
         put t 0.0 full a by=A
         => ok
         delete t
         => ok
         put t 0.1 full late by=A
         => E_LEASE_LOST
         put t 0.0 full late by=A
         => E_LEASE_LOST
         writes t 0.0 1:0=late by=A
         => E_LEASE_LOST
         renew t A 300
         => no
         threads
         =>
         acquire t 100 200 as B
         => granted
         put t 0.0 full b by=A
         => E_LEASE_LOST
         put t 0.0 full b by=B
         => ok",
    ),
];
