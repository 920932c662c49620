//! How well a file fits that is to be taken in, in the words of the answers.

pub(crate) const FITS: &str = "compatible";
pub(crate) const FITS_HALF: &str = "warning";
pub(crate) const FITS_NOT: &str = "incompatible";
