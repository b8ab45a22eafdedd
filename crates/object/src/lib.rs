//! Kubernetes objects as dynamic values: JSON and YAML as Go reads them, metadata, field errors, Status, selectors.
