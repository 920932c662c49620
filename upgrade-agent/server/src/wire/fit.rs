//! The compatibility of an imported file, in the words of the responses.

pub(crate) const FITS: &str = "compatible";
pub(crate) const FITS_HALF: &str = "warning";
pub(crate) const FITS_NOT: &str = "incompatible";
