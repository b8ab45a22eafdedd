//! Ranges of costs and sizes, with arithmetic that saturates.

/// The range a cost lies in, in cost units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CostEstimate {
    /// At least.
    pub min: u64,
    /// At most; `u64::MAX` when unknown.
    pub max: u64,
}

/// The range a size lies in: code points of a string, bytes, elements of a list or entries of a map.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SizeEstimate {
    /// At least.
    pub min: u64,
    /// At most; `u64::MAX` when unknown.
    pub max: u64,
}

impl CostEstimate {
    /// A cost that is known.
    pub const fn fixed(cost: u64) -> CostEstimate {
        CostEstimate { min: cost, max: cost }
    }

    pub(super) fn plus(self, other: CostEstimate) -> CostEstimate {
        CostEstimate { min: self.min.saturating_add(other.min), max: self.max.saturating_add(other.max) }
    }

    pub(super) fn times(self, other: CostEstimate) -> CostEstimate {
        CostEstimate { min: self.min.saturating_mul(other.min), max: self.max.saturating_mul(other.max) }
    }

    pub(super) fn scaled(self, factor: f64) -> CostEstimate {
        CostEstimate { min: scale(self.min, factor), max: scale(self.max, factor) }
    }

    pub(super) fn union(self, other: CostEstimate) -> CostEstimate {
        CostEstimate { min: self.min.min(other.min), max: self.max.max(other.max) }
    }
}

impl SizeEstimate {
    /// Nothing is known.
    pub const UNKNOWN: SizeEstimate = SizeEstimate { min: 0, max: u64::MAX };

    /// A size that is known.
    pub const fn fixed(size: u64) -> SizeEstimate {
        SizeEstimate { min: size, max: size }
    }

    /// A size of which only the greatest is known.
    pub const fn at_most(max: u64) -> SizeEstimate {
        SizeEstimate { min: 0, max }
    }

    pub(super) fn plus(self, other: SizeEstimate) -> SizeEstimate {
        SizeEstimate { min: self.min.saturating_add(other.min), max: self.max.saturating_add(other.max) }
    }

    pub(super) fn times(self, other: SizeEstimate) -> SizeEstimate {
        SizeEstimate { min: self.min.saturating_mul(other.min), max: self.max.saturating_mul(other.max) }
    }

    pub(super) fn union(self, other: SizeEstimate) -> SizeEstimate {
        SizeEstimate { min: self.min.min(other.min), max: self.max.max(other.max) }
    }

    /// The cost of a walk over so many units.
    pub(super) fn cost(self, per_unit: f64) -> CostEstimate {
        CostEstimate { min: scale(self.min, per_unit), max: scale(self.max, per_unit) }
    }

    /// The cost of so many repetitions.
    pub(super) fn repetitions(self, of: CostEstimate) -> CostEstimate {
        CostEstimate { min: self.min.saturating_mul(of.min), max: self.max.saturating_mul(of.max) }
    }
}

/// `ceil(value * factor)` in doubles, as cel-go computes it.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "as in Go; `as` saturates at 2^64"
)]
fn scale(value: u64, factor: f64) -> u64 {
    (value as f64 * factor).ceil() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scaling_rounds_up_and_saturates() {
        for (value, factor, expected) in
            [(0, 0.1, 0), (1, 0.1, 1), (30, 0.1, 3), (31, 0.1, 4), (u64::MAX, 0.1, 1_844_674_407_370_955_264)]
        {
            assert_eq!(scale(value, factor), expected);
        }
        assert_eq!(scale(u64::MAX, 1.0), u64::MAX);
        assert_eq!(scale(u64::MAX, 50.0), u64::MAX);
    }

    #[test]
    fn sums_and_products_saturate() {
        let max = CostEstimate::fixed(u64::MAX);
        assert_eq!(max.plus(CostEstimate::fixed(1)), max);
        assert_eq!(max.times(CostEstimate::fixed(2)), max);
        assert_eq!(max.times(CostEstimate::fixed(0)).max, 0);
    }
}
