//! [`delegate!`](crate::delegate): the methods of a wrapper that only call the store inside it.

use std::sync::Arc;

use crate::checkpointer::Checkpointer;

/// Implements methods of [`Checkpointer`](crate::Checkpointer), [`Leases`](crate::Leases),
/// [`Catalog`](crate::Catalog) and [`Upkeep`](crate::Upkeep) by the same methods of the store inside a
/// wrapper: `delegate!(self => &self.inner; get, list)`, within the `impl`.
///
/// All arguments are passed on. A method that is neither written nor listed is a compiler error, except
/// [`try_put`](crate::Checkpointer::try_put), which has a default. The future is that of the inner store;
/// an `async fn` would box it a second time.
///
/// ```
/// use std::sync::Mutex;
///
/// use agentgraph_checkpoint::{Checkpointer, MemorySaver, StoreError, delegate};
///
/// /// Keeps a log of threads that were deleted.
/// struct Audited<C> {
///     inner: C,
///     deleted: Mutex<Vec<String>>,
/// }
///
/// #[async_trait::async_trait]
/// impl<C: Checkpointer> Checkpointer for Audited<C> {
///     async fn delete_thread(&self, thread: &str) -> Result<(), StoreError> {
///         self.inner.delete_thread(thread).await?;
///         self.deleted.lock().unwrap().push(thread.to_owned());
///         Ok(())
///     }
///
///     delegate!(self => &self.inner; get, row, put, try_put, put_writes, list, threads);
///     delegate!(self => &self.inner; outlives_its_process, keeps_secrets, leases, catalog, upkeep);
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), StoreError> {
/// let store = Audited { inner: MemorySaver::new(), deleted: Mutex::default() };
/// store.delete_thread("t-1").await?;
/// assert_eq!(*store.deleted.lock().unwrap(), ["t-1"]);
/// # Ok(())
/// # }
/// ```
///
/// A wrapper that changes a method of an extension returns itself as that extension, but only over a store
/// that has it: `delegate!(self over &self.inner; leases)`. A store with extensions of its own returns
/// itself: `delegate!(self has: leases, catalog, upkeep)`.
#[macro_export]
macro_rules! delegate {
    ($me:ident => $inner:expr; $($method:ident),+ $(,)?) => {
        $($crate::delegate!(@$method [$me => $inner]);)+
    };
    ($me:ident has: $($extension:ident),+ $(,)?) => {
        $($crate::delegate!(@$extension [$me has]);)+
    };
    ($me:ident over $inner:expr; $($extension:ident),+ $(,)?) => {
        $($crate::delegate!(@$extension [$me over $inner]);)+
    };
    // For a store that fails every call.
    ($me:ident fails: $error:expr; $($method:ident),+ $(,)?) => {
        $($crate::delegate!(@$method [$me fails $error]);)+
    };

    // A row for each method: its signature, then the call on the inner store.
    (@get $how:tt) => { $crate::delegate!(@later $how get<'a>(place: $crate::Place<'a>, at: Option<$crate::CheckpointId>) -> Option<$crate::Tail>, inner => $crate::Checkpointer::get(inner, place, at)); };
    (@row $how:tt) => { $crate::delegate!(@later $how row<'a>(place: $crate::Place<'a>, id: $crate::CheckpointId) -> Option<$crate::Row>, inner => $crate::Checkpointer::row(inner, place, id)); };
    (@put $how:tt) => { $crate::delegate!(@later $how put<'a>(put: $crate::Put<'a>) -> (), inner => $crate::Checkpointer::put(inner, put)); };
    (@try_put $how:tt) => { $crate::delegate!(@now $how try_put(put: &$crate::Put<'_>) -> Option<Result<(), $crate::StoreError>>, inner => $crate::Checkpointer::try_put(inner, put)); };
    (@put_writes $how:tt) => { $crate::delegate!(@later $how put_writes<'a>(put: $crate::PutWrites<'a>) -> (), inner => $crate::Checkpointer::put_writes(inner, put)); };
    (@list $how:tt) => { $crate::delegate!(@later $how list<'a>(place: $crate::Place<'a>, query: $crate::ListQuery) -> Vec<$crate::Row>, inner => $crate::Checkpointer::list(inner, place, query)); };
    (@threads $how:tt) => { $crate::delegate!(@later $how threads<>() -> Vec<String>, inner => $crate::Checkpointer::threads(inner)); };
    (@delete_thread $how:tt) => { $crate::delegate!(@later $how delete_thread<'a>(thread: &'a str) -> (), inner => $crate::Checkpointer::delete_thread(inner, thread)); };
    (@outlives_its_process $how:tt) => { $crate::delegate!(@now $how outlives_its_process() -> bool, inner => $crate::Checkpointer::outlives_its_process(inner)); };
    (@keeps_secrets $how:tt) => { $crate::delegate!(@now $how keeps_secrets() -> bool, inner => $crate::Checkpointer::keeps_secrets(inner)); };
    (@leases $how:tt) => { $crate::delegate!(@now $how leases() -> Option<&dyn $crate::Leases>, inner => $crate::Checkpointer::leases(inner)); };
    (@catalog $how:tt) => { $crate::delegate!(@now $how catalog() -> Option<&dyn $crate::Catalog>, inner => $crate::Checkpointer::catalog(inner)); };
    (@upkeep $how:tt) => { $crate::delegate!(@now $how upkeep() -> Option<&dyn $crate::Upkeep>, inner => $crate::Checkpointer::upkeep(inner)); };

    (@acquire $how:tt) => { $crate::delegate!(@later $how acquire<'a>(thread: &'a str, terms: $crate::LeaseTerms) -> $crate::Claim, inner => $crate::leases::leases_of(inner).acquire(thread, terms)); };
    (@renew $how:tt) => { $crate::delegate!(@later $how renew<'a>(thread: &'a str, fence: u64, until: ::std::time::SystemTime) -> bool, inner => $crate::leases::leases_of(inner).renew(thread, fence, until)); };
    (@release $how:tt) => { $crate::delegate!(@later $how release<'a>(thread: &'a str, fence: u64) -> (), inner => $crate::leases::leases_of(inner).release(thread, fence)); };
    (@let_go $how:tt) => { $crate::delegate!(@now $how let_go(thread: &str, fence: u64) -> (), inner => $crate::leases::leases_of(inner).let_go(thread, fence)); };
    (@released $how:tt) => { $crate::delegate!(@future $how released<'a>(thread: &'a str, fence: u64) -> (), inner => $crate::leases::leases_of(inner).released(thread, fence)); };
    (@ask_to_stop $how:tt) => { $crate::delegate!(@later $how ask_to_stop<'a>(thread: &'a str, now: ::std::time::SystemTime) -> Option<u64>, inner => $crate::leases::leases_of(inner).ask_to_stop(thread, now)); };
    (@held $how:tt) => { $crate::delegate!(@later $how held<'a>(query: $crate::HeldQuery<'a>) -> Vec<$crate::HeldLease>, inner => $crate::leases::leases_of(inner).held(query)); };
    (@hear_stops $how:tt) => { $crate::delegate!(@now $how hear_stops(listener: ::std::sync::Weak<dyn $crate::HearsStops>) -> (), inner => $crate::leases::leases_of(inner).hear_stops(listener)); };

    (@waiting $how:tt) => { $crate::delegate!(@later $how waiting<'a>(query: $crate::WaitingQuery<'a>) -> Vec<$crate::Waiting>, inner => ::std::boxed::Box::pin($crate::catalog::waiting(inner, query))); };
    (@namespaces $how:tt) => { $crate::delegate!(@later $how namespaces<'a>(thread: &'a str) -> Vec<String>, inner => ::std::boxed::Box::pin($crate::catalog::namespaces(inner, thread))); };
    (@branches $how:tt) => { $crate::delegate!(@later $how branches<'a>(place: $crate::Place<'a>) -> Vec<u32>, inner => ::std::boxed::Box::pin($crate::catalog::branches(inner, place))); };
    (@usage $how:tt) => { $crate::delegate!(@later $how usage<>() -> $crate::Usage, inner => ::std::boxed::Box::pin($crate::catalog::usage(inner))); };

    (@copy_thread $how:tt) => { $crate::delegate!(@later $how copy_thread<'a, 'b>(from: &'a str, to: &'b str) -> (), inner => ::std::boxed::Box::pin($crate::upkeep::copy_thread(inner, from, to))); };
    (@rewrite $how:tt) => { $crate::delegate!(@later $how rewrite<'a>(rewrite: $crate::Rewrite<'a>) -> (), inner => ::std::boxed::Box::pin($crate::upkeep::rewrite(inner, rewrite))); };
    (@compact $how:tt) => { $crate::delegate!(@later $how compact<>() -> (), inner => ::std::boxed::Box::pin($crate::upkeep::compact(inner))); };

    (@later [$me:ident fails $error:expr] $name:ident<$($life:lifetime),*>($($arg:ident: $type:ty),*) -> $answer:ty, $inner:ident => $call:expr) => {
        $crate::delegate!(@method $me $name<$($life),*>($($arg: $type),*) -> Result<$answer, $crate::StoreError>, {
            let _ = ($($arg,)*);
            ::std::boxed::Box::pin(::core::future::ready(Err($error)))
        });
    };
    (@later $how:tt $name:ident<$($life:lifetime),*>($($arg:ident: $type:ty),*) -> $answer:ty, $inner:ident => $call:expr) => {
        $crate::delegate!(@future $how $name<$($life),*>($($arg: $type),*) -> Result<$answer, $crate::StoreError>, $inner => $call);
    };
    (@future [$me:ident => $to:expr] $name:ident<$($life:lifetime),*>($($arg:ident: $type:ty),*) -> $answer:ty, $inner:ident => $call:expr) => {
        $crate::delegate!(@method $me $name<$($life),*>($($arg: $type),*) -> $answer, {
            let $inner = $to;
            $call
        });
    };
    // The signature of an `async fn` as `async_trait` writes it.
    (@method $me:ident $name:ident<$($life:lifetime),*>($($arg:ident: $type:ty),*) -> $answer:ty, $body:block) => {
        fn $name<'me, $($life,)* 'async_trait>(
            &'me $me,
            $($arg: $type,)*
        ) -> ::core::pin::Pin<::std::boxed::Box<dyn ::core::future::Future<Output = $answer> + Send + 'async_trait>>
        where
            'me: 'async_trait,
            $($life: 'async_trait,)*
            Self: 'async_trait,
        $body
    };
    (@now [$me:ident has] $name:ident() -> $answer:ty, $inner:ident => $call:expr) => {
        fn $name(&$me) -> $answer {
            Some($me)
        }
    };
    (@now [$me:ident over $to:expr] $name:ident() -> $answer:ty, $inner:ident => $call:expr) => {
        fn $name(&$me) -> $answer {
            let $inner = $to;
            $call.map(|_| $me as _)
        }
    };
    (@now [$me:ident => $to:expr] $name:ident($($arg:ident: $type:ty),*) -> $answer:ty, $inner:ident => $call:expr) => {
        fn $name(&$me, $($arg: $type),*) -> $answer {
            let $inner = $to;
            $call
        }
    };
}

/// Delegates everything.
impl<C: Checkpointer + ?Sized> Checkpointer for Arc<C> {
    crate::delegate!(self => &**self; get, row, put, try_put, put_writes, list, threads, delete_thread);
    crate::delegate!(self => &**self; outlives_its_process, keeps_secrets, leases, catalog, upkeep);
}
