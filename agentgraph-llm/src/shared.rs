//! Values that share their fields between clones.

/// Makes a tuple struct over an `Arc` of its fields dereference to them. A change of shared fields copies
/// them first.
macro_rules! shared {
    ($shared:ident, $fields:ident) => {
        impl From<$fields> for $shared {
            fn from(fields: $fields) -> Self {
                $shared(::std::sync::Arc::new(fields))
            }
        }

        impl ::std::ops::Deref for $shared {
            type Target = $fields;

            #[inline]
            fn deref(&self) -> &$fields {
                &self.0
            }
        }

        impl ::std::ops::DerefMut for $shared {
            fn deref_mut(&mut self) -> &mut $fields {
                ::std::sync::Arc::make_mut(&mut self.0)
            }
        }

        impl ::std::fmt::Debug for $shared {
            fn fmt(&self, out: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                self.0.fmt(out)
            }
        }
    };
}

pub(crate) use shared;
