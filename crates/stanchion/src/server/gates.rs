//! Upstream's feature gates as of 1.33: which there are, which are on, and which can be switched.

use std::collections::BTreeMap;
use std::fmt::Write;

/// How far a feature is, and what may be done with its gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Off unless asked for.
    Alpha,
    Beta,
    /// On for good.
    Locked,
    /// Part of every server, and still to be switched off.
    Stable,
    Deprecated,
    /// Off for good.
    Dropped,
}

impl Stage {
    /// As upstream's metric calls it.
    fn label(self) -> &'static str {
        match self {
            Stage::Alpha => "ALPHA",
            Stage::Beta => "BETA",
            Stage::Locked | Stage::Stable => "",
            Stage::Deprecated | Stage::Dropped => "DEPRECATED",
        }
    }
}

/// Names of gates with what they are by default.
const GATES: [(Stage, bool, &str); 9] = [
    (
        Stage::Alpha,
        false,
        "AllowUnsafeMalformedObjectDeletion APIServingWithRoutine CBORServingAndStorage CloudControllerManagerWebhook \
         ComponentFlagz ComponentStatusz ContainerStopSignals CPUCFSQuotaPeriod CPUManagerPolicyAlphaOptions \
         CrossNamespaceVolumeDataSource CSIVolumeHealth DeploymentReplicaSetTerminatingReplicas DRAAdminAccess \
         DRADeviceTaints DRAPartitionableDevices DRAPrioritizedList EventedPLEG ExternalServiceAccountTokenSigner \
         HPAConfigurableTolerance HPAScaleToZero InPlacePodVerticalScalingExclusiveCPUs InTreePluginPortworxUnregister \
         KubeletCrashLoopBackOffMax KubeletEnsureSecretPulledImages KubeletInUserNamespace \
         KubeletPodResourcesDynamicResources KubeletPodResourcesGet KubeletPSI \
         KubeletServiceAccountTokenForCredentialProviders ListFromCacheSnapshot LoggingAlphaOptions \
         MaxUnavailableStatefulSet MemoryQoS MutableCSINodeAllocatableCount MutatingAdmissionPolicy \
         PodAndContainerStatsFromCRI PodLevelResources PodLogsQuerySplitStreams PodObservedGenerationTracking \
         PodTopologyLabelsAdmission PreferSameTrafficDistribution QOSReserved ReduceDefaultCrashLoopBackOffDecay \
         ResourceHealthStatus RuntimeClassInImageCriAPI StorageCapacityScoring StorageVersionAPI StorageVersionMigrator \
         StrictIPCIDRValidation TopologyManagerPolicyAlphaOptions UnknownVersionInteroperabilityProxy \
         UserNamespacesPodSecurityStandards WindowsCPUAndMemoryAffinity WindowsGracefulNodeShutdown",
    ),
    (
        Stage::Beta,
        true,
        "AllowParsingUserUIDFromCertAuth AnonymousAuthConfigurableEndpoints APIResponseCompression APIServerIdentity \
         APIServerTracing AuthorizeNodeWithSelectors AuthorizeWithSelectors ConsistentListFromCache ContainerCheckpoint \
         ContextualLogging CPUManagerPolicyBetaOptions DeclarativeValidation DisableCPUQuotaWithExclusiveCPUs \
         DRAResourceClaimDeviceStatus GracefulNodeShutdown GracefulNodeShutdownBasedOnPodPriority ImageMaximumGCAge \
         InPlacePodVerticalScaling JobManagedBy JobPodReplacementPolicy KubeletCgroupDriverFromCRI KubeletFineGrainedAuthz \
         KubeletSeparateDiskGC KubeletTracing LoggingBetaOptions MatchLabelKeysInPodTopologySpread NodeSwap OpenAPIEnums \
         OrderedNamespaceDeletion PodDeletionCost PodLifecycleSleepAction PodLifecycleSleepActionAllowZero \
         PodReadyToStartContainersCondition PortForwardWebsockets ProcMountType RecoverVolumeExpansionFailure \
         RelaxedDNSSearchValidation RelaxedEnvironmentVariableValidation ReloadKubeletServerCertificateFile \
         RemoteRequestHeaderUID ResilientWatchCacheInitialization RotateKubeletServerCertificate SchedulerAsyncPreemption \
         SchedulerPopFromBackoffQ SchedulerQueueingHints SELinuxChangePolicy SELinuxMountReadWriteOncePod \
         SeparateTaintEvictionController ServiceAccountNodeAudienceRestriction StorageVersionHash \
         StreamingCollectionEncodingToJSON StreamingCollectionEncodingToProtobuf StructuredAuthenticationConfiguration \
         SupplementalGroupsPolicy SystemdWatchdog TopologyManagerPolicyBetaOptions TranslateStreamCloseWebsocketRequests \
         UnauthenticatedHTTP2DOSMitigation UserNamespacesSupport WinDSR WinOverlay",
    ),
    (
        Stage::Beta,
        false,
        "ClusterTrustBundle ClusterTrustBundleProjection ConcurrentWatchObjectDecode CoordinatedLeaderElection \
         DeclarativeValidationTakeover DisableAllocatorDualWrite DynamicResourceAllocation ImageVolume \
         LocalStorageCapacityIsolationFSQuotaMonitoring NodeLogQuery SELinuxMount VolumeAttributesClass \
         WatchCacheInitializationPostStartHook WatchList",
    ),
    (
        Stage::Locked,
        true,
        "AnyVolumeDataSource BtreeWatchCache ComponentSLIs CPUManagerPolicyOptions CRDValidationRatcheting \
         CronJobsScheduledAnnotation CSIMigrationPortworx CustomResourceFieldSelectors DevicePluginCDIDevices \
         HonorPVReclaimPolicy JobBackoffLimitPerIndex JobSuccessPolicy LoadBalancerIPMode LogarithmicScaleDown \
         MatchLabelKeysInPodAffinity MemoryManager NFTablesProxyMode NodeInclusionPolicyInPodTopologySpread PodIndexLabel \
         PodSchedulingReadiness RecursiveReadOnlyMounts RetryGenerateName ServiceAccountTokenJTI \
         ServiceAccountTokenNodeBinding ServiceAccountTokenNodeBindingValidation ServiceAccountTokenPodNodeInfo \
         ServiceTrafficDistribution SidecarContainers SizeMemoryBackedVolumes StatefulSetAutoDeletePVC \
         StrictCostEnforcementForVAP StrictCostEnforcementForWebhooks StructuredAuthorizationConfiguration \
         TopologyAwareHints",
    ),
    (Stage::Stable, true, "ExecProbeTimeout MultiCIDRServiceAllocator TopologyManagerPolicyOptions"),
    (Stage::Deprecated, true, "AggregatedDiscoveryRemoveBetaType DisableNodeKubeProxyVersion StorageNamespaceIndex"),
    (
        Stage::Deprecated,
        false,
        "AllowDNSOnlyNodeCSR AllowInsecureKubeletCertificateSigningRequests AllowOverwriteTerminationGracePeriodSeconds \
         GitRepoVolumeDriver InPlacePodVerticalScalingAllocatedStatus KMSv1 KubeletRegistrationGetOnExistsOnly \
         LegacySidecarContainers SeparateCacheWatchRPC WindowsHostNetwork",
    ),
    (Stage::Dropped, false, "AllowServiceLBStatusOnNonLB WatchFromStorageWithoutResourceVersion"),
    // They switch all of a stage.
    (Stage::Alpha, false, ALL_ALPHA),
];

const ALL_ALPHA: &str = "AllAlpha";
const ALL_BETA: &str = "AllBeta";

/// All gates and whether they are on.
#[derive(Clone, Debug)]
pub struct Gates(BTreeMap<&'static str, (Stage, bool)>);

impl Default for Gates {
    fn default() -> Self {
        let mut all = BTreeMap::from([(ALL_BETA, (Stage::Beta, false))]);
        for (stage, on, names) in GATES {
            all.extend(names.split_ascii_whitespace().map(|name| (name, (stage, on))));
        }
        Gates(all)
    }
}

impl Gates {
    /// The gates when these are switched, in this order; those of a whole stage give way to single ones.
    ///
    /// # Errors
    /// What upstream says of gates that there are not, or that cannot be switched.
    pub fn with(switches: &[(&str, bool)]) -> Result<Self, String> {
        let mut gates = Gates::default();
        for (all, of) in [(ALL_ALPHA, Stage::Alpha), (ALL_BETA, Stage::Beta)] {
            if let Some((_, on)) = switches.iter().rev().find(|(name, _)| *name == all) {
                gates.0.values_mut().filter(|(stage, _)| *stage == of).for_each(|(_, is)| *is = *on);
            }
        }
        for (name, on) in switches {
            let Some((stage, is)) = gates.0.get_mut::<str>(name) else {
                return Err(format!("unrecognized feature gate: {name}"));
            };
            if matches!(stage, Stage::Locked | Stage::Dropped) && is != on {
                return Err(format!("cannot set feature gate {name} to {on}, feature is locked to {is}"));
            }
            *is = *on;
        }
        Ok(gates)
    }

    /// Whether a feature is on.
    pub fn is_on(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(|(_, on)| *on)
    }

    /// The gates as a metric, as upstream has it.
    pub fn metric(&self) -> String {
        let name = "kubernetes_feature_enabled";
        let mut out = format!("# HELP {name} Whether a feature is on, by its stage.\n# TYPE {name} gauge\n");
        for (feature, (stage, on)) in &self.0 {
            // Writing to memory does not fail.
            let _ = writeln!(out, "{name}{{name=\"{feature}\",stage=\"{}\"}} {}", stage.label(), u8::from(*on));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_gate_is_named_once() {
        let names = GATES.iter().flat_map(|(_, _, names)| names.split_ascii_whitespace()).count();
        assert_eq!(Gates::default().0.len(), names + 1, "and AllBeta");
    }

    #[test]
    fn a_gate_goes_before_those_of_its_stage() {
        let on = |switches: &[(&str, bool)], name: &str| Gates::with(switches).unwrap().is_on(name);
        assert!(!on(&[], "MutatingAdmissionPolicy"));
        assert!(on(&[("AllAlpha", true)], "MutatingAdmissionPolicy"));
        assert!(!on(&[("MutatingAdmissionPolicy", false), ("AllAlpha", true)], "MutatingAdmissionPolicy"));
        assert!(!on(&[("AllBeta", false)], "NodeSwap"));
        assert!(on(&[("AllBeta", false)], "SidecarContainers"));
    }

    #[test]
    fn what_cannot_be_switched_is_refused_in_upstreams_words() {
        for (switch, error) in [
            (("Nonsense", true), "unrecognized feature gate: Nonsense"),
            (
                ("SidecarContainers", false),
                "cannot set feature gate SidecarContainers to false, feature is locked to true",
            ),
        ] {
            assert_eq!(Gates::with(&[switch]).unwrap_err(), error);
        }
        assert!(Gates::with(&[("SidecarContainers", true)]).is_ok());
    }

    #[test]
    fn the_metric_has_every_gate() {
        let text = Gates::with(&[("WatchList", true)]).unwrap().metric();
        for line in [
            "kubernetes_feature_enabled{name=\"WatchList\",stage=\"BETA\"} 1",
            "kubernetes_feature_enabled{name=\"AllAlpha\",stage=\"ALPHA\"} 0",
            "kubernetes_feature_enabled{name=\"SidecarContainers\",stage=\"\"} 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}");
        }
    }
}
