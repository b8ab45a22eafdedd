//! The resources of the group `networking.k8s.io`.

mod ingress;
mod ingressclass;
mod ipaddress;
mod networkpolicy;

use crate::resource::Resource;

pub(crate) const RESOURCES: &[Resource] = &[
    ingressclass::INGRESS_CLASSES,
    ingress::INGRESSES,
    ipaddress::IP_ADDRESSES,
    networkpolicy::NETWORK_POLICIES,
    ipaddress::SERVICE_CIDRS,
];
