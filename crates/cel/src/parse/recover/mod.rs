//! Words for what is wrong with a text.
//!
//! Texts come here only when [`crate::parse::fast`] gave up on them. The text is read again by [`walk`], which follows
//! cel-go's grammar as a graph and treats errors as ANTLR's parsers do, and the tree that results is looked through by
//! [`visit`] for the rest.

mod choose;
mod graph;
mod report;
mod stream;
mod tree;
mod visit;
mod walk;
mod words;

use crate::issues::Issues;
use report::Report;
use std::sync::Arc;

/// All that is wrong with a text the quick parser gave up on.
pub(crate) fn explain(text: &Arc<str>) -> Issues {
    let mut report = Report::new(text);
    if let Ok((tree, root)) = walk::walk(text, &mut report) {
        // What halts the visit was reported.
        let _ = visit::visit(&tree, root, &mut report);
    }
    let mut issues = report.finish();
    if issues.is_empty() {
        // Only a chain of `optMap`, which doubles with each call, is refused without either parser minding its text.
        issues.report(crate::source::Location::NONE, "expression is too large after macro expansion");
    }
    issues
}
