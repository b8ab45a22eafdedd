//! What is served only where it is asked for: `--feature-gates` and `--runtime-config`, in upstream's form.

use super::gates::Gates;
use clap::Args as ClapArgs;

/// Flags about what is off by default.
#[derive(ClapArgs, Debug)]
#[group(skip)]
pub struct Args {
    /// Features that are on or off: MutatingAdmissionPolicy=true
    #[arg(long, value_name = "NAME=BOOL,...", value_delimiter = ',', env = "STANCHION_FEATURE_GATES")]
    feature_gates: Vec<String>,

    /// Versions of groups that are served: admissionregistration.k8s.io/v1alpha1=true
    #[arg(long, value_name = "GROUP/VERSION=BOOL,...", value_delimiter = ',', env = "STANCHION_RUNTIME_CONFIG")]
    runtime_config: Vec<String>,
}

/// What is on.
#[derive(Clone, Debug)]
pub struct Features {
    /// MutatingAdmissionPolicies: the feature is on and its version is served.
    pub mutating_policies: bool,
    /// All features.
    pub gates: Gates,
}

/// The versions that [`Args::runtime_config`] can switch; the last one that names them counts.
const ALPHA: [&str; 3] = ["admissionregistration.k8s.io/v1alpha1", "api/alpha", "api/all"];
/// The feature that can be switched.
const MUTATING: &str = "MutatingAdmissionPolicy";
/// What names versions that are always served.
const SERVED: [&str; 2] = ["api/ga", "api/beta"];

impl Args {
    /// Reads the flags. Of the features that upstream has, one can be switched here: of others that are set to what they
    /// are not by default, a warning is logged. So it is of versions that are not here, and of those that always are.
    ///
    /// # Errors
    /// What is neither true nor false, and features that upstream does not have or lets nobody switch.
    pub fn read(&self) -> Result<Features, String> {
        let mut alpha = [None; ALPHA.len()];
        // Upstream's components have gates of their own; there is one here.
        let named = switches(&self.feature_gates)?.into_iter();
        let named: Vec<_> = named.map(|(name, on)| (name.strip_prefix("kube:").unwrap_or(name), on)).collect();
        let gates = Gates::with(&named).map_err(|why| format!("--feature-gates: {why}"))?;
        let usual = Gates::default();
        for (name, on) in named.iter().filter(|(name, on)| *name != MUTATING && usual.is_on(name) != *on) {
            tracing::warn!(feature = name, on, "this feature gate changes nothing here");
        }
        for (name, on) in switches(&self.runtime_config)? {
            match ALPHA.iter().position(|known| *known == name) {
                Some(place) => alpha[place] = Some(on),
                None if on && (SERVED.contains(&name) || is_served(name)) => {}
                None if is_served(name) || SERVED.contains(&name) => {
                    tracing::warn!(version = name, "this version cannot be switched off");
                }
                None => tracing::warn!(version = name, "this version is not known here"),
            }
        }
        // What names the version itself goes before what names many.
        let served = alpha.into_iter().flatten().next().unwrap_or(false);
        Ok(Features { mutating_policies: gates.is_on(MUTATING) && served, gates })
    }
}

impl Features {
    /// The built-in resources that are served beside those that always are.
    pub fn optional(&self) -> Vec<&'static str> {
        if self.mutating_policies { kinds::optional().iter().map(|r| r.plural).collect() } else { Vec::new() }
    }
}

fn is_served(name: &str) -> bool {
    let (group, version) = name.split_once('/').unwrap_or(("", name));
    kinds::group_versions(group).contains(&version)
}

fn switches(texts: &[String]) -> Result<Vec<(&str, bool)>, String> {
    let read = |text: &'_ String| -> Result<(usize, bool), String> {
        let (name, value) = text.split_once('=').unwrap_or((text, "true"));
        match value {
            "" | "true" | "1" | "t" | "T" | "TRUE" | "True" => Ok((name.len(), true)),
            "false" | "0" | "f" | "F" | "FALSE" | "False" => Ok((name.len(), false)),
            _ => Err(format!("invalid value of {name}={value}: it has to be true or false")),
        }
    };
    texts.iter().map(|text| read(text).map(|(end, on)| (text.get(..end).unwrap_or_default(), on))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(gates: &[&str], runtime: &[&str]) -> Result<bool, String> {
        let texts = |texts: &[&str]| texts.iter().map(|t| (*t).to_owned()).collect();
        let args = Args { feature_gates: texts(gates), runtime_config: texts(runtime) };
        args.read().map(|features| features.mutating_policies)
    }

    #[test]
    fn alpha_kinds_need_their_feature_and_their_version() {
        const GATE: &str = "MutatingAdmissionPolicy=true";
        const VERSION: &str = "admissionregistration.k8s.io/v1alpha1";
        for (gates, runtime, on) in [
            (&[][..], &[][..], false),
            (&[GATE], &[], false),
            (&[], &["admissionregistration.k8s.io/v1alpha1=true"], false),
            (&[GATE], &["admissionregistration.k8s.io/v1alpha1=true"], true),
            (&[GATE], &[VERSION], true),
            (&["AllAlpha=true"], &["api/alpha=true", "apps/v1=true"], true),
            (&[GATE], &["api/all=true", "admissionregistration.k8s.io/v1alpha1=false"], false),
        ] {
            assert_eq!(read(gates, runtime), Ok(on), "{gates:?} {runtime:?}");
        }
        assert_eq!(
            read(&["WatchList=true", "kube:MutatingAdmissionPolicy=true"], &["nowhere/v1=true", VERSION]),
            Ok(true)
        );
        assert_eq!(read(&["AllAlpha=true", "MutatingAdmissionPolicy=false"], &["apps/v1=false", VERSION]), Ok(false));
        assert_eq!(
            read(&[GATE, "Nonsense=true"], &[]).unwrap_err(),
            "--feature-gates: unrecognized feature gate: Nonsense"
        );
        assert_eq!(
            read(&["AllBeta=maybe"], &[]).unwrap_err(),
            "invalid value of AllBeta=maybe: it has to be true or false"
        );
    }
}
