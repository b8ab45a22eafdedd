//! How controllers make and delete pods, with the events that they tell of it.

use client::events::{EventType, Recorder};
use client::resources::PODS;
use client::{Api, Client, DeleteParams, Error, Patch, PatchParams, Result};
use object::{Value, map};

/// Makes and deletes pods for their owners, who are told of it by events.
#[derive(Clone, Debug)]
pub struct PodControl {
    api: Api,
    recorder: Recorder,
}

impl PodControl {
    /// Pods of this client; events come from this recorder.
    pub fn new(client: &Client, recorder: Recorder) -> Self {
        PodControl { api: client.api(&PODS), recorder }
    }

    /// Creates a pod for its owner.
    pub async fn create(&self, owner: &Value, pod: &Value) -> Result<Value> {
        let result = self.api.create(owner.namespace(), pod).await;
        match &result {
            Ok(pod) => {
                let message = format!("Created pod: {}", pod.name());
                self.recorder.event(owner, EventType::Normal, "SuccessfulCreate", &message);
            }
            // Nothing can be created in a namespace that goes away, and its events neither.
            Err(error) if error.is_namespace_terminating() => {}
            Err(error) => {
                let message = format!("Error creating: {error}");
                self.recorder.event(owner, EventType::Warning, "FailedCreate", &message);
            }
        }
        result
    }

    /// Deletes a pod of an owner. One that is not there is not an error; then the answer is false.
    pub async fn delete(&self, owner: &Value, pod: &Value) -> Result<bool> {
        match self.api.delete(pod.namespace(), pod.name(), &DeleteParams::default()).await {
            Ok(_) => {
                let message = format!("Deleted pod: {}", pod.name());
                self.recorder.event(owner, EventType::Normal, "SuccessfulDelete", &message);
                Ok(true)
            }
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => {
                let message = format!("Error deleting: {error}");
                self.recorder.event(owner, EventType::Warning, "FailedDelete", &message);
                Err(error)
            }
        }
    }

    /// Takes a finalizer off a pod. Gives the pod as it is then, or nothing if it is gone.
    pub async fn release(&self, pod: &Value, finalizer: &str) -> Result<Option<Value>> {
        let patch = map! { "metadata" => map! { "$deleteFromPrimitiveList/finalizers" => vec![finalizer] } };
        self.patch(pod, patch.into()).await
    }

    /// Changes a pod by a strategic merge patch. Gives the pod as it is then, or nothing if it is gone.
    pub async fn patch(&self, pod: &Value, patch: Value) -> Result<Option<Value>> {
        let patch = Patch::Strategic(patch);
        match self.api.patch(pod.namespace(), pod.name(), &patch, &PatchParams::default()).await {
            Ok(pod) => Ok(Some(pod)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Keeps the first error.
pub fn keep_first(kept: &mut Option<Error>, result: Result<()>) {
    if let Err(error) = result {
        kept.get_or_insert(error);
    }
}
