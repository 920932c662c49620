//! Leases and fences: a thread has one leaseholder, and commits with an older fence change nothing.

pub(super) const CASES: &[(&str, &str)] = &[
    (
        "a thread has one lease at a time",
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
        "a lease expires, and the next fence is greater",
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
        "a released thread can be leased again",
        "acquire t 100 200 as A
         => granted
         release t A
         acquire t 100 200 as B
         => granted
         release t A
         acquire t 100 200 as C
         => held by B until 200
         release u B
         acquire t 100 200 as C
         => held by B until 200",
    ),
    (
        "`seize` takes a thread from its leaseholder",
        "acquire t 100 200 as A
         => granted
         acquire t 100 300 as B seize
         => granted
         acquire t 100 300 as C
         => held by B until 300
         put t 0.0 full a by=A
         => E_LEASE_LOST
         put t 0.0 full b by=B",
    ),
    (
        "a lease can be renewed until another writer takes the thread",
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
         renew t B 600
         => no
         renew u B 600
         => no",
    ),
    (
        "an expired lease stays valid until another writer takes the thread",
        "acquire t 100 200 as A
         => granted
         put t 0.0 full a by=A
         renew t A 400
         => yes
         put t 0.1 delta b by=A
         acquire t 400 500 as B
         => granted
         put t 0.2 delta late by=A
         => E_LEASE_LOST
         put t 0.2 delta c by=B",
    ),
    (
        "a commit with an old fence is refused and changes nothing",
        "acquire t 100 200 as A
         => granted
         put t 0.0 full a by=A
         writes t 0.0 1:0=w by=A
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
         get t
         => full 0.0 a, delta 0.1 b",
    ),
    (
        "pending writes with an old fence are refused and change nothing",
        "acquire t 100 200 as A
         => granted
         put t 0.0 full a by=A
         writes t 0.0 1:0=w by=A
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
         get t
         => full 0.0 a, write 1:0 new",
    ),
    (
        "commits and pending writes with a released fence are refused",
        "acquire t 100 200 as A
         => granted
         put t 0.0 full a by=A
         release t A
         put t 0.1 delta late by=A
         => E_LEASE_LOST
         writes t 0.0 1:0=late by=A
         => E_LEASE_LOST
         get t
         => full 0.0 a",
    ),
    (
        "the fence of one thread is not valid for another",
        "acquire t 100 200 as A
         => granted
         acquire u 100 200 as B
         => granted
         put u 0.0 full a by=A
         => E_LEASE_LOST
         writes u 0.0 1:0=a by=A
         => E_LEASE_LOST
         put t 0.0 full a by=A
         put u 0.0 full b by=B
         release u A
         put u 0.1 delta b by=B",
    ),
    (
        "commits and pending writes without a fence need no lease",
        "acquire t 100 200 as A
         => granted
         put t 0.0 full a
         writes t 0.0 1:0=w
         get t
         => full 0.0 a, write 1:0 w",
    ),
    (
        "a deleted thread has no lease, and late commits with its old fence are refused",
        "acquire t 100 200 as A
         => granted
         put t 0.0 full a by=A
         delete t
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
         put t 0.0 full b by=B",
    ),
    (
        "a request to stop is for the present lease, which stays valid",
        "stop t 100
         => nobody
         acquire t 100 200 as A
         => granted
         acquire u 100 200 as C
         => granted
         held 150
         => t A until 200, u C until 200
         stop t 150
         => A
         stop t 150
         => A
         held 150
         => t A until 200 asked, u C until 200
         put t 0.0 full a by=A
         writes t 0.0 1:0=w by=A
         renew t A 300
         => yes
         acquire t 250 400 as B
         => held by A until 300
         held 250
         => t A until 300 asked
         stop u 250
         => nobody",
    ),
    (
        "no later lease of the thread inherits a request to stop",
        "acquire t 100 200 as A
         => granted
         stop t 150
         => A
         release t A
         held 150
         =>
         stop t 150
         => nobody
         acquire t 150 200 as B
         => granted
         held 150
         => t B until 200
         stop t 150
         => B
         acquire t 200 300 as C
         => granted
         held 250
         => t C until 300
         stop t 250
         => C
         acquire t 250 400 as D seize
         => granted
         held 250
         => t D until 400
         stop t 250
         => D
         delete t
         stop t 250
         => nobody
         acquire t 250 400 as E
         => granted
         held 250
         => t E until 400",
    ),
    (
        "held leases are listed by their threads, in pages",
        "held 100
         =>
         acquire b 100 200 as B
         => granted
         acquire a 100 300 as A
         => granted
         acquire d 100 200 as D
         => granted
         acquire c 100 150 as C
         => granted
         stop d 110
         => D
         stop a 110
         => A
         held 110
         => a A until 300 asked, b B until 200, c C until 150, d D until 200 asked
         held 110 limit=2
         => a A until 300 asked, b B until 200
         held 110 after=b
         => c C until 150, d D until 200 asked
         held 110 after=bb limit=1
         => c C until 150
         held 110 thread=b
         => b B until 200
         held 110 thread=e
         =>
         held 110 asked
         => a A until 300 asked, d D until 200 asked
         held 110 asked after=a
         => d D until 200 asked
         held 110 asked limit=1
         => a A until 300 asked
         held 110 asked thread=b
         =>
         held 150
         => a A until 300 asked, b B until 200, d D until 200 asked
         held 300
         =>",
    ),
];
