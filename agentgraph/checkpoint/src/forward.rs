//! Forwarding to the store beneath: whoever stands before one says what he does himself, and all else is
//! handed on. Written out by hand, a method that was forgotten would silently be that of a store which lacks
//! the ability.
//!
//! `forwards!(($) name: put rewrite);` makes a macro `name!(self => (self.inner));`, which in an
//! `impl Checkpointer` stands for every method but these two. It writes what `async_trait` makes of an async
//! function, without a second box.

/// Every method of `Checkpointer`.
macro_rules! every_method {
    ($pick:ident $me:ident $to:tt) => {
        $pick!(@ get $me $to);
        $pick!(@ row $me $to);
        $pick!(@ put $me $to);
        $pick!(@ try_put $me $to);
        $pick!(@ put_writes $me $to);
        $pick!(@ list $me $to);
        $pick!(@ threads $me $to);
        $pick!(@ delete_thread $me $to);
        $pick!(@ outlives_its_process $me $to);
        $pick!(@ keeps_secrets $me $to);
        $pick!(@ acquire $me $to);
        $pick!(@ renew $me $to);
        $pick!(@ release $me $to);
        $pick!(@ let_go $me $to);
        $pick!(@ released $me $to);
        $pick!(@ waiting $me $to);
        $pick!(@ namespaces $me $to);
        $pick!(@ branches $me $to);
        $pick!(@ copy_thread $me $to);
        $pick!(@ rewrite $me $to);
        $pick!(@ compact $me $to);
        $pick!(@ usage $me $to);
    };
}

macro_rules! forwards {
    (($d:tt) $name:ident: $($own:ident)*) => {
        macro_rules! $name {
            ($d me:ident => $d to:tt) => {
                $crate::forward::every_method!($name $d me $d to);
            };
            $((@ $own $d me:ident $d to:tt) => {};)*
            (@ $d method:ident $d me:ident $d to:tt) => {
                $crate::forward::forward_one!($d method $d me $d to);
            };
        }
    };
}

macro_rules! forward_one {
    (get $me:ident $to:tt) => {
        $crate::forward::asynchronous!(get $me $to ('a) (place: $crate::Place<'a>, at: Option<$crate::CheckpointId>) Result<Option<$crate::Tail>, $crate::StoreError>);
    };
    (row $me:ident $to:tt) => {
        $crate::forward::asynchronous!(row $me $to ('a) (place: $crate::Place<'a>, id: $crate::CheckpointId) Result<Option<$crate::Row>, $crate::StoreError>);
    };
    (put $me:ident $to:tt) => {
        $crate::forward::asynchronous!(put $me $to ('a) (put: $crate::Put<'a>) Result<(), $crate::StoreError>);
    };
    (try_put $me:ident $to:tt) => {
        fn try_put(&$me, put: &$crate::Put<'_>) -> Option<Result<(), $crate::StoreError>> {
            $to.try_put(put)
        }
    };
    (put_writes $me:ident $to:tt) => {
        $crate::forward::asynchronous!(put_writes $me $to ('a) (put: $crate::PutWrites<'a>) Result<(), $crate::StoreError>);
    };
    (list $me:ident $to:tt) => {
        $crate::forward::asynchronous!(list $me $to ('a) (place: $crate::Place<'a>, query: $crate::ListQuery) Result<Vec<$crate::Row>, $crate::StoreError>);
    };
    (threads $me:ident $to:tt) => {
        $crate::forward::asynchronous!(threads $me $to () () Result<Vec<String>, $crate::StoreError>);
    };
    (delete_thread $me:ident $to:tt) => {
        $crate::forward::asynchronous!(delete_thread $me $to ('a) (thread: &'a str) Result<(), $crate::StoreError>);
    };
    (outlives_its_process $me:ident $to:tt) => {
        fn outlives_its_process(&$me) -> bool {
            $to.outlives_its_process()
        }
    };
    (keeps_secrets $me:ident $to:tt) => {
        fn keeps_secrets(&$me) -> bool {
            $to.keeps_secrets()
        }
    };
    (acquire $me:ident $to:tt) => {
        $crate::forward::asynchronous!(acquire $me $to ('a) (thread: &'a str, terms: $crate::LeaseTerms) Result<$crate::Claim, $crate::StoreError>);
    };
    (renew $me:ident $to:tt) => {
        $crate::forward::asynchronous!(renew $me $to ('a) (thread: &'a str, fence: u64, until: ::std::time::SystemTime) Result<bool, $crate::StoreError>);
    };
    (release $me:ident $to:tt) => {
        $crate::forward::asynchronous!(release $me $to ('a) (thread: &'a str, fence: u64) Result<(), $crate::StoreError>);
    };
    (let_go $me:ident $to:tt) => {
        fn let_go(&$me, thread: &str, fence: u64) {
            $to.let_go(thread, fence);
        }
    };
    (released $me:ident $to:tt) => {
        $crate::forward::asynchronous!(released $me $to ('a) (thread: &'a str, fence: u64) ());
    };
    (waiting $me:ident $to:tt) => {
        $crate::forward::asynchronous!(waiting $me $to ('a) (query: $crate::WaitingQuery<'a>) Result<Vec<$crate::Waiting>, $crate::StoreError>);
    };
    (namespaces $me:ident $to:tt) => {
        $crate::forward::asynchronous!(namespaces $me $to ('a) (thread: &'a str) Result<Vec<String>, $crate::StoreError>);
    };
    (branches $me:ident $to:tt) => {
        $crate::forward::asynchronous!(branches $me $to ('a) (place: $crate::Place<'a>) Result<Vec<u32>, $crate::StoreError>);
    };
    (copy_thread $me:ident $to:tt) => {
        $crate::forward::asynchronous!(copy_thread $me $to ('a 'b) (from: &'a str, to: &'b str) Result<(), $crate::StoreError>);
    };
    (rewrite $me:ident $to:tt) => {
        $crate::forward::asynchronous!(rewrite $me $to ('a) (rewrite: $crate::Rewrite<'a>) Result<(), $crate::StoreError>);
    };
    (compact $me:ident $to:tt) => {
        $crate::forward::asynchronous!(compact $me $to () () Result<(), $crate::StoreError>);
    };
    (usage $me:ident $to:tt) => {
        $crate::forward::asynchronous!(usage $me $to () () Result<$crate::Usage, $crate::StoreError>);
    };
}

macro_rules! asynchronous {
    ($method:ident $me:ident $to:tt ($($of:lifetime)*) ($($given:ident: $type:ty),*) $result:ty) => {
        fn $method<'me, $($of,)* 'async_trait>(&'me $me, $($given: $type),*) -> ::futures_util::future::BoxFuture<'async_trait, $result>
        where
            'me: 'async_trait,
            $($of: 'async_trait,)*
            Self: 'async_trait,
        {
            $to.$method($($given),*)
        }
    };
}

pub(crate) use {asynchronous, every_method, forward_one, forwards};

#[cfg(test)]
mod tests {
    /// Otherwise a method with a body would be forgotten in silence by whoever stands before a store.
    #[test]
    fn every_method_of_a_store_is_forwarded() {
        let (_, declared) = include_str!("checkpointer.rs").split_once("pub trait Checkpointer").unwrap();
        let (declared, _) = declared.split_once("\n}\n").unwrap();
        let methods = declared.lines().filter_map(|line| {
            let line = line.trim_start();
            let line = line.strip_prefix("async ").unwrap_or(line);
            Some(line.strip_prefix("fn ")?.split_once('(')?.0)
        });
        let forwarded = include_str!("forward.rs");
        let missing: Vec<&str> = methods
            .clone()
            .filter(|name| !forwarded.contains(&format!("$pick!(@ {name} $me $to);")))
            .collect();
        assert!(missing.is_empty() && methods.count() > 20, "not forwarded: {missing:?}");
    }
}
