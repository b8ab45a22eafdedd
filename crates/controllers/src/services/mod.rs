//! The controllers that say where the pods of a Service are: `endpoints-controller`, `endpointslice-controller` and
//! `endpointslicemirroring-controller`.

mod address;
mod endpoints;
mod mirroring;
mod reconcile;
mod selected;
mod slice;
mod slices;
mod subsets;
mod triggers;

pub(crate) use endpoints::EndpointsController;
pub(crate) use mirroring::Mirroring;
pub(crate) use slices::EndpointSlices;
