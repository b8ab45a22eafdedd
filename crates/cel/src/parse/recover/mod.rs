//! Words for what is wrong with a text.

use crate::issues::Issues;
use std::sync::Arc;

/// All that is wrong with a text the quick parser gave up on.
pub(crate) fn explain(text: &Arc<str>) -> Issues {
    let mut issues = Issues::new(Arc::clone(text));
    issues.report_at(0, "Syntax error");
    issues
}
