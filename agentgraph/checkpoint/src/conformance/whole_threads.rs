//! Whole threads: their branches and namespaces, copies, lists across threads, and rewrites.

pub(super) const CASES: &[(&str, &str)] = &[
    (
        "branches are listed by number, even with large gaps",
        "branches t
         =>
         put t 3.5 full a
         => ok
         put t 4000000000.5 full b
         => ok
         put t 0.0 full c
         => ok
         put t 0.1 delta d
         => ok
         put t/n 7.0 full e
         => ok
         writes t 2.0 1:0=x
         => ok
         branches t
         => 0, 3, 4000000000
         branches t/n
         => 7
         get t
         => full 4000000000.5 b
         rewrite t gone=3:0..9
         => ok
         branches t
         => 0, 4000000000",
    ),
    (
        "a copy has all rows and pending writes and is independent of its source",
        "put t 0.0 full a
         => ok
         put t 0.1 delta b segment=ab
         => ok
         put t 1.1 full c
         => ok
         put t/n 0.4 full child
         => ok
         writes t 1.1 1:0=w
         => ok
         writes t/n 0.4 2:1=x
         => ok
         copy t u
         => ok
         threads
         => t, u
         namespaces u
         => ``, `n`
         get u
         => full 1.1 c, write 1:0 w
         get u 0.1
         => full 0.0 a, segment 0.1 ab
         list u branch=0
         => delta 0.1 b, full 0.0 a
         get u/n
         => full 0.4 child, write 2:1 x
         put u 1.2 delta d clears
         => ok
         get t
         => full 1.1 c, write 1:0 w
         delete t
         => ok
         get u
         => full 1.1 c, delta 1.2 d
         get u/n
         => full 0.4 child, write 2:1 x",
    ),
    (
        "a copy onto an existing thread fails and changes nothing",
        "put t 0.0 full a
         => ok
         put u 0.0 full b
         => ok
         put v/n 0.0 full c
         => ok
         copy t u
         => E_THREAD_EXISTS
         copy t v
         => E_THREAD_EXISTS
         copy t t
         => E_THREAD_EXISTS
         copy nobody u
         => E_THREAD_EXISTS
         get t
         => full 0.0 a
         get u
         => full 0.0 b
         copy t w
         => ok
         get w
         => full 0.0 a",
    ),
    (
        "a copy onto a thread that has only pending writes fails and changes nothing",
        "put t 0.0 full a
         => ok
         writes u 0.0 1:0=w
         => ok
         writes v/n 2.5 1:1=x
         => ok
         copy t u
         => E_THREAD_EXISTS
         copy t v
         => E_THREAD_EXISTS
         threads
         => t
         put u 0.0 full b
         => ok
         get u
         => full 0.0 b, write 1:0 w",
    ),
    (
        "a copy of a thread that does not exist fails and changes nothing",
        "copy nobody u
         => E_UNKNOWN_THREAD
         acquire held 100 200 as A
         => granted
         copy held u
         => E_UNKNOWN_THREAD
         threads
         =>
         put t 0.0 full a
         => ok
         copy t u
         => ok
         delete t
         => ok
         copy t v
         => E_UNKNOWN_THREAD
         threads
         => u",
    ),
    (
        "a lease is not copied",
        "acquire t 100 200 as A
         => granted
         put t 0.0 full a by=A
         => ok
         copy t u
         => ok
         put u 0.1 delta b by=A
         => E_LEASE_LOST
         acquire u 100 200 as B
         => granted
         put u 0.1 delta b by=B
         => ok
         put t 0.1 delta c by=A
         => ok",
    ),
    (
        "`waiting` lists unanswered requests across threads",
        "waiting
         =>
         put b 0.0 full a
         => ok
         writes b 0.0 1:1=q 2:0=result 2:1=old 2:2=answer 3:1=again 3:2=again
         => ok
         put a 0.0 full a
         => ok
         writes a 0.0 7:1=first 7:2=x 7:3=second
         => ok
         put a/n 0.4 full child
         => ok
         writes a/n 0.4 5:1=inside
         => ok
         put c 0.0 full a
         => ok
         writes c 0.0 0:1=session 0:2=spent 9:4294967295=failed 9:0=result
         => ok
         waiting
         => a 0.0 write 7:3 second, a/n 0.4 write 5:1 inside, b 0.0 write 1:1 q
         waiting limit=1
         => a 0.0 write 7:3 second, a/n 0.4 write 5:1 inside
         waiting after=a
         => b 0.0 write 1:1 q
         waiting after=b limit=5
         =>",
    ),
    (
        "`waiting` lists a stop without a request until the next checkpoint",
        "put t 0.0 full a
         => ok
         writes t 0.0 0:0=told 0:1=session 3:0=result 3:1=q
         => ok
         put t/n 0.1 full b
         => ok
         writes t/n 0.1 0:0=too
         => ok
         waiting
         => t 0.0 write 0:0 told, t 0.0 write 3:1 q, t/n 0.1 write 0:0 too
         put t 0.1 delta c clears
         => ok
         waiting limit=1
         => t/n 0.1 write 0:0 too",
    ),
    (
        "results of durable steps are stored beside requests and are not listed by `waiting`",
        "put t 0.0 full a
         => ok
         writes t 0.0 1:2147483648=once 1:2147483650=again 2:2147483648=once 2:1=q
         => ok
         waiting
         => t 0.0 write 2:1 q
         get t
         => full 0.0 a, write 1:2147483648 once, write 1:2147483650 again, write 2:1 q, write 2:2147483648 once
         writes t 0.0 2:2=answer
         => ok
         waiting
         =>
         put t 0.1 delta b clears
         => ok
         get t
         => full 0.0 a, delta 0.1 b",
    ),
    (
        "`waiting` ignores requests on checkpoints that are not the newest",
        "put t 0.0 full a
         => ok
         writes t 0.0 1:1=old
         => ok
         put t 0.1 delta b
         => ok
         waiting
         =>
         writes t 0.1 1:1=new
         => ok
         waiting
         => t 0.1 write 1:1 new
         writes t 0.5 1:1=early
         => ok
         writes t 2.0 1:1=early
         => ok
         waiting
         => t 0.1 write 1:1 new
         put t 1.1 full c
         => ok
         waiting
         =>
         writes t 1.1 4:1=q
         => ok
         waiting
         => t 1.1 write 4:1 q
         delete t
         => ok
         waiting
         =>",
    ),
    (
        "namespaces with rows are listed by name",
        "namespaces t
         =>
         put t/b 0.0 full a
         => ok
         put t/a:1 0.0 full a
         => ok
         put u/c 0.0 full a
         => ok
         writes t/d 0.0 1:0=x
         => ok
         namespaces t
         => `a:1`, `b`
         put t 0.0 full a
         => ok
         namespaces t
         => ``, `a:1`, `b`",
    ),
    (
        "`rewrite` removes steps with their segments and pending writes, and nothing else",
        "put t 0.0 full a
         => ok
         put t 0.1 delta b segment=ab
         => ok
         writes t 0.1 1:0=w
         => ok
         put t 0.2 full c
         => ok
         put t 0.3 delta d
         => ok
         writes t 0.3 1:0=x
         => ok
         put t 1.1 full other
         => ok
         put t/n 0.0 full child
         => ok
         put u 0.0 full a
         => ok
         rewrite t gone=0:0..2
         => ok
         list t branch=0
         => delta 0.3 d, full 0.2 c
         get t 0.3
         => full 0.2 c, delta 0.3 d, write 1:0 x
         get t 0.1
         => nothing
         row t 0.1
         => nothing
         get t
         => full 1.1 other
         get t/n
         => full 0.0 child
         get u
         => full 0.0 a
         put t 0.1 delta again
         => E_STALE
         put t 0.4 delta e
         => ok
         get t 0.4
         => full 0.2 c, delta 0.3 d, delta 0.4 e",
    ),
    (
        "`rewrite` replaces a delta with a full, and `get` ignores earlier rows",
        "put t 0.0 full a
         => ok
         put t 0.1 delta b
         => ok
         put t 0.2 delta c segment=bc
         => ok
         put t 0.3 delta d
         => ok
         put t 0.4 delta e segment=de
         => ok
         rewrite t full=0.2:abc unfold=0.4 gone=0:0..2
         => ok
         get t
         => full 0.2 abc, delta 0.3 d, delta 0.4 e
         list t
         => delta 0.4 e, delta 0.3 d, full 0.2 abc
         put t 0.5 delta f
         => ok
         get t
         => full 0.2 abc, delta 0.3 d, delta 0.4 e, delta 0.5 f
         rewrite t full=0.4:abcde gone=0:2..4
         => ok
         get t
         => full 0.4 abcde, delta 0.5 f
         rewrite t full=0.5:z gone=0:0..5 gone=7:0..9
         => ok
         list t
         => full 0.5 z",
    ),
    (
        "a thread or namespace without rows does not exist",
        "put t 0.0 full a
         => ok
         put t/n 0.0 full child
         => ok
         writes t/n 0.0 1:0=w
         => ok
         rewrite t/n gone=0:0..1
         => ok
         namespaces t
         => ``
         get t/n
         => nothing
         put t/n 0.0 full again
         => ok
         get t/n
         => full 0.0 again
         rewrite t/n gone=0:0..1
         => ok
         rewrite t gone=0:0..1
         => ok
         threads
         =>
         rewrite nobody gone=0:0..1
         => ok",
    ),
    (
        "a rewrite with an old fence is refused and changes nothing",
        "acquire t 100 200 as A
         => granted
         put t 0.0 full a by=A
         => ok
         put t 0.1 full b by=A
         => ok
         acquire t 200 300 as B
         => granted
         rewrite t full=0.1:z gone=0:0..1 by=A
         => E_LEASE_LOST
         list t
         => full 0.1 b, full 0.0 a
         rewrite t full=0.1:z gone=0:0..1 by=B
         => ok
         list t
         => full 0.1 z",
    ),
];
