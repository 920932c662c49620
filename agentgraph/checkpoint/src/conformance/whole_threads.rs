//! Whole threads: their branches and namespaces, copies, lists across threads, and rewrites.

pub(super) const CASES: &[(&str, &str)] = &[
    (
        "branches are listed by number, even with large gaps",
        "branches t
         =>
         put t 3.5 full a
         put t 4000000000.5 full b
         put t 0.0 full c
         put t 0.1 delta d
         put t/n 7.0 full e
         writes t 2.0 1:0=x
         branches t
         => 0, 3, 4000000000
         branches t/n
         => 7
         get t
         => full 4000000000.5 b
         rewrite t gone=3:0..9
         branches t
         => 0, 4000000000",
    ),
    (
        "a copy has all rows and pending writes and is independent of its source",
        "put t 0.0 full a
         put t 0.1 delta b segment=ab
         put t 1.1 full c
         put t/n 0.4 full child
         writes t 1.1 1:0=w
         writes t/n 0.4 2:1=x
         copy t u
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
         get t
         => full 1.1 c, write 1:0 w
         delete t
         get u
         => full 1.1 c, delta 1.2 d
         get u/n
         => full 0.4 child, write 2:1 x",
    ),
    (
        "a copy onto an existing thread fails and changes nothing",
        "put t 0.0 full a
         put u 0.0 full b
         put v/n 0.0 full c
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
         get w
         => full 0.0 a",
    ),
    (
        "a copy onto a thread that has only pending writes fails and changes nothing",
        "put t 0.0 full a
         writes u 0.0 1:0=w
         writes v/n 2.5 1:1=x
         copy t u
         => E_THREAD_EXISTS
         copy t v
         => E_THREAD_EXISTS
         threads
         => t
         put u 0.0 full b
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
         copy t u
         delete t
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
         copy t u
         put u 0.1 delta b by=A
         => E_LEASE_LOST
         acquire u 100 200 as B
         => granted
         put u 0.1 delta b by=B
         put t 0.1 delta c by=A",
    ),
    (
        "`waiting` lists unanswered requests across threads",
        "waiting
         =>
         put b 0.0 full a
         writes b 0.0 1:1=q 2:0=result 2:1=old 2:2=answer 3:1=again 3:2=again
         put a 0.0 full a
         writes a 0.0 7:1=first 7:2=x 7:3=second
         put a/n 0.4 full child
         writes a/n 0.4 5:1=inside
         put c 0.0 full a
         writes c 0.0 0:1=session 0:2=spent 9:4294967295=failed 9:0=result
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
         writes t 0.0 0:0=told 0:1=session 3:0=result 3:1=q
         put t/n 0.1 full b
         writes t/n 0.1 0:0=too
         waiting
         => t 0.0 write 0:0 told, t 0.0 write 3:1 q, t/n 0.1 write 0:0 too
         put t 0.1 delta c clears
         waiting limit=1
         => t/n 0.1 write 0:0 too",
    ),
    (
        "results of durable steps are stored beside requests and are not listed by `waiting`",
        "put t 0.0 full a
         writes t 0.0 1:2147483648=once 1:2147483650=again 2:2147483648=once 2:1=q
         waiting
         => t 0.0 write 2:1 q
         get t
         => full 0.0 a, write 1:2147483648 once, write 1:2147483650 again, write 2:1 q, write 2:2147483648 once
         writes t 0.0 2:2=answer
         waiting
         =>
         put t 0.1 delta b clears
         get t
         => full 0.0 a, delta 0.1 b",
    ),
    (
        "`waiting` ignores requests on checkpoints that are not the newest",
        "put t 0.0 full a
         writes t 0.0 1:1=old
         put t 0.1 delta b
         waiting
         =>
         writes t 0.1 1:1=new
         waiting
         => t 0.1 write 1:1 new
         writes t 0.5 1:1=early
         writes t 2.0 1:1=early
         waiting
         => t 0.1 write 1:1 new
         put t 1.1 full c
         waiting
         =>
         writes t 1.1 4:1=q
         waiting
         => t 1.1 write 4:1 q
         delete t
         waiting
         =>",
    ),
    (
        "namespaces with rows are listed by name",
        "namespaces t
         =>
         put t/b 0.0 full a
         put t/a:1 0.0 full a
         put u/c 0.0 full a
         writes t/d 0.0 1:0=x
         namespaces t
         => `a:1`, `b`
         put t 0.0 full a
         namespaces t
         => ``, `a:1`, `b`",
    ),
    (
        "`rewrite` removes steps with their segments and pending writes, and nothing else",
        "put t 0.0 full a
         put t 0.1 delta b segment=ab
         writes t 0.1 1:0=w
         put t 0.2 full c
         put t 0.3 delta d
         writes t 0.3 1:0=x
         put t 1.1 full other
         put t/n 0.0 full child
         put u 0.0 full a
         rewrite t gone=0:0..2
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
         get t 0.4
         => full 0.2 c, delta 0.3 d, delta 0.4 e",
    ),
    (
        "`rewrite` replaces a delta with a full, and `get` ignores earlier rows",
        "put t 0.0 full a
         put t 0.1 delta b
         put t 0.2 delta c segment=bc
         put t 0.3 delta d
         put t 0.4 delta e segment=de
         rewrite t full=0.2:abc unfold=0.4 gone=0:0..2
         get t
         => full 0.2 abc, delta 0.3 d, delta 0.4 e
         list t
         => delta 0.4 e, delta 0.3 d, full 0.2 abc
         put t 0.5 delta f
         get t
         => full 0.2 abc, delta 0.3 d, delta 0.4 e, delta 0.5 f
         rewrite t full=0.4:abcde gone=0:2..4
         get t
         => full 0.4 abcde, delta 0.5 f
         rewrite t full=0.5:z gone=0:0..5 gone=7:0..9
         list t
         => full 0.5 z",
    ),
    (
        "a thread or namespace without rows does not exist",
        "put t 0.0 full a
         put t/n 0.0 full child
         writes t/n 0.0 1:0=w
         rewrite t/n gone=0:0..1
         namespaces t
         => ``
         get t/n
         => nothing
         put t/n 0.0 full again
         get t/n
         => full 0.0 again
         rewrite t/n gone=0:0..1
         rewrite t gone=0:0..1
         threads
         =>
         rewrite nobody gone=0:0..1",
    ),
    (
        "a rewrite with an old fence is refused and changes nothing",
        "acquire t 100 200 as A
         => granted
         put t 0.0 full a by=A
         put t 0.1 full b by=A
         acquire t 200 300 as B
         => granted
         rewrite t full=0.1:z gone=0:0..1 by=A
         => E_LEASE_LOST
         list t
         => full 0.1 b, full 0.0 a
         rewrite t full=0.1:z gone=0:0..1 by=B
         list t
         => full 0.1 z",
    ),
];
