//! Memory over time.

/// Resident memory at moments.
#[derive(Clone, Debug, Default)]
pub struct Samples(Vec<(f64, f64)>);

impl Samples {
    /// Notes the resident memory in bytes, so many seconds after the start.
    pub fn note(&mut self, seconds: f64, bytes: u64) {
        self.0.push((seconds, bytes as f64));
    }

    /// The largest, in bytes.
    pub fn peak(&self) -> f64 {
        self.0.iter().map(|sample| sample.1).fold(0.0, f64::max)
    }

    /// By how many bytes a second memory grows after so many seconds, by the line that fits best.
    pub fn slope(&self, after: f64) -> f64 {
        let late: Vec<_> = self.0.iter().filter(|sample| sample.0 >= after).collect();
        let count = late.len() as f64;
        let mean = |of: fn(&(f64, f64)) -> f64| late.iter().map(|s| of(s)).sum::<f64>() / count;
        let (x, y) = (mean(|s| s.0), mean(|s| s.1));
        let over: f64 = late.iter().map(|s| (s.0 - x) * (s.1 - y)).sum();
        let under: f64 = late.iter().map(|s| (s.0 - x).powi(2)).sum();
        if under > 0.0 { over / under } else { 0.0 }
    }

    /// The mean after so many seconds, in bytes.
    pub fn mean(&self, after: f64) -> f64 {
        let late: Vec<f64> = self.0.iter().filter(|s| s.0 >= after).map(|s| s.1).collect();
        late.iter().sum::<f64>() / late.len().max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slope_is_that_of_what_comes_after_the_start() {
        let mut samples = Samples::default();
        for second in 0..10 {
            samples.note(f64::from(second), if second < 5 { 0 } else { 100 + 2 * second as u64 });
        }
        assert!((samples.slope(5.0) - 2.0).abs() < 1e-9);
        assert_eq!(Samples::default().slope(0.0), 0.0);
        assert_eq!(samples.peak(), 118.0);
    }
}
