//! Precision of the figures of a review.

/// Rounds to six significant digits: sufficient for a modelled figure, and shorter to write.
pub fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    text::digits::rounded(value, 6)
}
