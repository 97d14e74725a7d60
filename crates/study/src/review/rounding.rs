//! How exactly a review tells figures.

/// Six significant digits: all that a figure of a model deserves, and shorter to write.
pub fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    text::digits::rounded(value, 6)
}
