//! Macros for implementations that are the same for many types.

/// Lets a builder be awaited: generics, the builder, the lifetime of its future, the output, and the future.
///
/// ```text
/// awaited!([S: State] StateEdit<S>: 'static Result<CheckpointId, Error> = |edit| edit.make());
/// ```
#[macro_export]
#[doc(hidden)]
macro_rules! awaited {
    ([$($generics:tt)*] $builder:ty: $life:lifetime $output:ty = |$me:ident| $future:expr) => {
        impl<$($generics)*> ::std::future::IntoFuture for $builder {
            type Output = $output;
            type IntoFuture =
                ::std::pin::Pin<Box<dyn ::std::future::Future<Output = $output> + Send + $life>>;

            fn into_future(self) -> Self::IntoFuture {
                let $me = self;
                Box::pin($future)
            }
        }
    };
}

/// `Debug` that shows some parts, and says that there are more.
///
/// ```text
/// shows!([C] EncryptedSaver<C>: |it| { keys: it.keys });
/// ```
#[macro_export]
#[doc(hidden)]
macro_rules! shows {
    (
        $([$($generics:tt)*])? $name:ident $(<$($parameter:tt),*>)?:
        |$me:ident| { $($part:ident: $value:expr),* }
    ) => {
        impl $(<$($generics)*>)? ::std::fmt::Debug for $name $(<$($parameter),*>)? {
            fn fmt(&self, out: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                let $me = self;
                out.debug_struct(stringify!($name))
                    $(.field(stringify!($part), &$value))*
                    .finish_non_exhaustive()
            }
        }
    };
}

pub(crate) use {awaited, shows};
