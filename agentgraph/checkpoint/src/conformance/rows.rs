//! Rows and pending writes: the store returns exactly what it was given, in order.

pub(super) const CASES: &[(&str, &str)] = &[
    (
        "calls on an empty store succeed and find nothing",
        "get t
         => nothing
         get t 0.0
         => nothing
         row t 0.0
         => nothing
         list t
         =>
         threads
         =>
         delete t",
    ),
    (
        "`get` returns a full and the deltas after it in order",
        "put t 0.0 full a
         put t 0.1 delta b
         put t 0.2 delta c
         get t
         => full 0.0 a, delta 0.1 b, delta 0.2 c
         get t 0.1
         => full 0.0 a, delta 0.1 b
         get t 0.0
         => full 0.0 a
         get t 0.3
         => nothing
         get t 1.0
         => nothing
         row t 0.1
         => delta 0.1 b
         row t 0.3
         => nothing",
    ),
    (
        "`get` starts with the newest full at or before the step",
        "put t 0.0 full a
         put t 0.1 delta b
         put t 0.2 full c
         put t 0.3 delta d
         get t
         => full 0.2 c, delta 0.3 d
         get t 0.2
         => full 0.2 c
         get t 0.1
         => full 0.0 a, delta 0.1 b",
    ),
    (
        "`get` returns a segment in place of the deltas up to its step",
        "put t 0.0 full a
         put t 0.1 delta b
         put t 0.2 delta c segment=bc
         put t 0.3 delta d
         put t 0.4 delta e segment=de
         put t 0.5 delta f
         get t
         => full 0.0 a, segment 0.2 bc, segment 0.4 de, delta 0.5 f
         get t 0.4
         => full 0.0 a, segment 0.2 bc, segment 0.4 de
         get t 0.3
         => full 0.0 a, segment 0.2 bc, delta 0.3 d
         get t 0.2
         => full 0.0 a, segment 0.2 bc
         get t 0.1
         => full 0.0 a, delta 0.1 b
         row t 0.2
         => delta 0.2 c
         list t
         => delta 0.5 f, delta 0.4 e, delta 0.3 d, delta 0.2 c, delta 0.1 b, full 0.0 a",
    ),
    (
        "`get` ignores segments before the newest full",
        "put t 0.0 full a
         put t 0.1 delta b segment=b
         put t 0.2 full c
         put t 0.3 delta d
         get t
         => full 0.2 c, delta 0.3 d",
    ),
    (
        "a commit that loses a race is stale and changes nothing",
        "put t 0.0 full a
         put t 0.1 delta b
         writes t 0.1 1:0=w
         writes t 0.0 2:0=v
         put t 0.1 delta other segment=s clears
         => E_STALE
         put t 0.0 full other
         => E_STALE
         get t
         => full 0.0 a, delta 0.1 b, write 1:0 w
         get t 0.0
         => full 0.0 a, write 2:0 v
         put t 0.2 delta c",
    ),
    (
        "a commit whose parent is missing is stale and changes nothing",
        "put t 0.0 full a after=0.7
         => E_STALE
         threads
         =>
         put t 0.0 full a
         put t 0.1 delta b after=0.0
         writes t 0.1 1:0=w
         put t 0.3 delta d after=0.2 clears
         => E_STALE
         put t 1.1 full e after=0.5
         => E_STALE
         put t/n 0.2 delta c after=0.1
         => E_STALE
         get t
         => full 0.0 a, delta 0.1 b, write 1:0 w
         put t 1.1 full e after=0.0
         put t 1.2 delta f after=1.1
         put t 0.2 delta c after=0.1 segment=bc
         get t 0.2
         => full 0.0 a, segment 0.2 bc
         delete t
         put t 0.3 delta d after=0.2
         => E_STALE
         put t 2.3 full d after=0.2
         => E_STALE
         threads
         =>",
    ),
    (
        "a commit with a segment checks its parent and clears pending writes like one without",
        "put t 0.0 full a
         writes t 0.0 1:0=w
         put t 0.1 delta b segment=s after=0.7 clears
         => E_STALE
         put t 1.1 full b segment=s after=0.7 clears
         => E_STALE
         get t
         => full 0.0 a, write 1:0 w
         put t 0.1 delta b segment=ab after=0.0 clears
         get t 0.0
         => full 0.0 a
         get t
         => full 0.0 a, segment 0.1 ab",
    ),
    (
        "a second commit of a checkpoint is stale, even with the same bytes",
        "put t 0.0 full a
         put t 0.0 full a
         => E_STALE
         put t 0.1 delta b segment=b after=0.0
         put t 0.1 delta b segment=b after=0.0
         => E_STALE
         put t 0.1 delta b
         => E_STALE
         get t
         => full 0.0 a, segment 0.1 b",
    ),
    (
        "steps are 64-bit numbers",
        "put t 0.1 full a
         put t 0.4294967297 delta b after=0.1
         put t 0.1099511627776 delta c segment=bc after=0.4294967297
         put t 0.4294967298 delta d
         => E_STALE
         writes t 0.1099511627776 1:0=w
         get t
         => full 0.1 a, segment 0.1099511627776 bc, write 1:0 w
         get t 0.4294967297
         => full 0.1 a, delta 0.4294967297 b
         get t 0.1
         => full 0.1 a
         row t 0.4294967297
         => delta 0.4294967297 b
         row t 0.0
         => nothing
         list t before=1099511627776
         => delta 0.4294967297 b, full 0.1 a
         rewrite t full=0.1099511627776:abc gone=0:0..1099511627776
         list t
         => full 0.1099511627776 abc
         copy t u
         get u
         => full 0.1099511627776 abc, write 1:0 w",
    ),
    (
        "pending writes in a commit are stored with it or not at all",
        "put t 0.0 full a
         writes t 0.0 1:0=old
         put t 0.1 full b after=0.0 clears with=1:1=ask with=1:0=done with=2:0=large:x
         get t
         => full 0.1 b, write 1:0 done, write 1:1 ask, write 2:0 large:x
         get t 0.0
         => full 0.0 a
         waiting
         => t 0.1 write 1:1 ask
         put t 0.1 full other with=9:1=lost
         => E_STALE
         put t 0.3 full other after=0.2 with=9:1=lost
         => E_STALE
         acquire t 100 200 as A
         => granted
         release t A
         put t 0.2 full other with=9:1=lost by=A
         => E_LEASE_LOST
         get t
         => full 0.1 b, write 1:0 done, write 1:1 ask, write 2:0 large:x
         put t 0.2 delta c after=0.1 clears
         put t 0.3 delta d after=0.2
         get t
         => full 0.1 b, delta 0.2 c, delta 0.3 d
         waiting
         =>",
    ),
    (
        "a commit below the newest step is stale, even if no row has its step",
        "put t 0.0 full a
         put t 0.7 full b
         put t 0.5 delta c
         => E_STALE
         list t
         => full 0.7 b, full 0.0 a",
    ),
    (
        "a delta without a full is found by `row` and not by `get`",
        "put t 0.3 delta a
         get t
         => nothing
         row t 0.3
         => delta 0.3 a
         threads
         => t",
    ),
    (
        "pending writes are sorted by task and slot; a later one replaces an earlier one",
        "put t 0.0 full a
         writes t 0.0 2:0=d 1:1=c 1:0=a
         get t
         => full 0.0 a, write 1:0 a, write 1:1 c, write 2:0 d
         writes t 0.0 1:0=new 3:4294967295=e
         get t
         => full 0.0 a, write 1:0 new, write 1:1 c, write 2:0 d, write 3:4294967295 e
         writes t 0.0
         writes t 0.0 340282366920938463463374607431768211455:0=last 9:0=x 9:0=y
         get t
         => full 0.0 a, write 1:0 new, write 1:1 c, write 2:0 d, write 3:4294967295 e, write 9:0 y, write 340282366920938463463374607431768211455:0 last",
    ),
    (
        "a commit that clears pending writes clears those of the previous step of its branch",
        "put t 0.0 full a
         writes t 0.0 1:0=x
         put t 0.1 delta b
         get t 0.0
         => full 0.0 a, write 1:0 x
         writes t 0.1 1:0=y
         writes t/n 0.1 1:0=z
         put t/n 0.1 full n
         put t 0.2 delta c clears
         get t 0.1
         => full 0.0 a, delta 0.1 b
         get t 0.0
         => full 0.0 a, write 1:0 x
         get t/n
         => full 0.1 n, write 1:0 z",
    ),
    (
        "pending writes on a missing step are kept for it and create no thread or branch",
        "writes t 0.0 1:0=x
         threads
         =>
         get t
         => nothing
         put t 0.0 full a
         writes t 4.0 1:0=y
         get t
         => full 0.0 a, write 1:0 x
         list t
         => full 0.0 a",
    ),
    (
        "the branch with the greatest number is the default",
        "put t 0.0 full a
         put t 0.1 delta b
         put t 2.1 full c
         put t 2.2 delta d
         put t 1.1 full e
         put t 0.2 delta f
         get t
         => full 2.1 c, delta 2.2 d
         get t 0.2
         => full 0.0 a, delta 0.1 b, delta 0.2 f
         get t 1.1
         => full 1.1 e
         get t 1.2
         => nothing
         list t
         => delta 2.2 d, full 2.1 c
         list t branch=0
         => delta 0.2 f, delta 0.1 b, full 0.0 a
         list t branch=3
         =>",
    ),
    (
        "namespaces of a thread are separate",
        "put t 0.0 full root
         put t/n 0.0 full child
         put t/m 0.5 full other
         get t
         => full 0.0 root
         get t/n
         => full 0.0 child
         list t/m
         => full 0.5 other
         get t/x
         => nothing
         threads
         => t",
    ),
    (
        "a list obeys `before` and `limit`",
        "put t 0.0 full a
         put t 0.1 delta b
         put t 0.2 delta c
         list t limit=2
         => delta 0.2 c, delta 0.1 b
         list t before=2
         => delta 0.1 b, full 0.0 a
         list t before=2 limit=1
         => delta 0.1 b
         list t before=0
         =>
         list t limit=0
         =>
         list t before=18446744073709551615 limit=18446744073709551615
         => delta 0.2 c, delta 0.1 b, full 0.0 a",
    ),
    (
        "a list of one branch obeys `before` and `limit`",
        "put t 0.0 full a
         put t 0.1 delta b
         put t 0.2 delta c
         put t 1.1 full d
         put t 1.2 delta e
         list t branch=0 limit=2
         => delta 0.2 c, delta 0.1 b
         list t branch=0 before=2
         => delta 0.1 b, full 0.0 a
         list t branch=0 before=2 limit=1
         => delta 0.1 b
         list t branch=1 limit=1
         => delta 1.2 e
         list t branch=1 before=1
         =>
         list t branch=0 limit=0
         =>",
    ),
    (
        "the last pending write for a task and slot in a call is kept, large or small",
        "put t 0.0 full a
         writes t 0.0 1:0=a 1:0=b
         writes t 0.0 1:2=large:a 1:2=large:b
         writes t 0.0 1:4=large:a 1:4=c
         writes t 0.0 1:6=c 1:6=large:a
         get t
         => full 0.0 a, write 1:0 b, write 1:2 large:b, write 1:4 c, write 1:6 large:a
         writes t 0.0 1:2=large:c 1:2=large:c 1:6=d 1:6=e
         get t
         => full 0.0 a, write 1:0 b, write 1:2 large:c, write 1:4 c, write 1:6 e",
    ),
    (
        "`compact` changes no records, pending writes or leases",
        "compact
         put t 0.0 full a
         put t 0.1 delta b segment=s
         put t 0.2 delta large:c
         writes t 0.2 1:1=w
         put u 0.0 full d
         delete u
         acquire t 100 200 as A
         => granted
         compact
         get t
         => full 0.0 a, segment 0.1 s, delta 0.2 large:c, write 1:1 w
         threads
         => t
         put t 0.3 delta e by=A
         acquire t 100 200 as B
         => held by A until 200",
    ),
    (
        "`threads` is sorted by name, and `delete_thread` removes a whole thread",
        "put b 0.0 full 1
         put a 0.0 full 2
         put a/n 0.0 full 3
         put ab 1.0 full 4
         writes a 0.0 1:0=x
         threads
         => a, ab, b
         delete a
         threads
         => ab, b
         get a
         => nothing
         get a/n
         => nothing
         put a 0.0 full again
         get a
         => full 0.0 again
         delete nobody",
    ),
];
