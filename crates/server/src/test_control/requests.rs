//! What a request meets on its way to the database.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde_json::Value;
use zenobe_api::faults::InjectedFault;
use zenobe_api::{Operation, Response};
use zenobe_engine::command::TableName;
use zenobe_engine::schema::Namespace;

use super::TestControl;
use super::plan::{Effect, Plan};
use super::rule::{Kind, When};
use super::table_states::{Met, shown, status_after};
use super::targets::{self, Targets};
use super::unprocessed::HeldBack;
use crate::dispatch::{Circumstances, Dropped, Handler};

/// A request, and what it is about.
struct Call<'a> {
    operation: Operation,
    namespace: &'a Arc<Namespace>,
    targets: Targets,
}

impl TestControl {
    pub(super) async fn handle(
        &self,
        operation: Operation,
        namespace: &Arc<Namespace>,
        circumstances: Circumstances,
        body: Bytes,
    ) -> Result<Response, Dropped> {
        *self.last_used.lock() = Instant::now();
        let Some(recorder) = &self.recorder else {
            return self.meet_rules(operation, namespace, circumstances, body).await;
        };
        let at_ms = recorder.at_ms();
        let outcome = self.meet_rules(operation, namespace, circumstances, body.clone()).await;
        recorder.record(at_ms, operation, &body, outcome.as_ref().ok()).await;
        outcome
    }

    async fn meet_rules(
        &self,
        operation: Operation,
        namespace: &Arc<Namespace>,
        circumstances: Circumstances,
        body: Bytes,
    ) -> Result<Response, Dropped> {
        let rules = self.rules.active();
        let is_plain = rules.is_empty() && self.states.is_empty();
        let request = if is_plain { None } else { serde_json::from_slice::<Value>(&body).ok() };
        let Some(request) = request else {
            let _open = self.replacing.read().await;
            return self
                .instance()
                .handler()
                .handle(operation, namespace, circumstances, body)
                .await;
        };
        let call = Call { operation, namespace, targets: Targets::of(operation, &request) };
        let plan = Plan::of(&rules, operation, &call.targets);
        // Before it holds the database: a restore need not wait for a request that only waits.
        tokio::time::sleep(Duration::from_millis(plan.latency_ms)).await;
        if let Some(effect) = plan.effect(When::Before) {
            return self.fail(effect, &call).await;
        }
        let response = self.work(&plan, &call, circumstances, body, request).await?;
        match plan.effect(When::After) {
            // What failed anyway says more.
            Some(effect) if response.error.is_none() => self.fail(effect, &call).await,
            _ => Ok(response),
        }
    }

    async fn fail(&self, effect: &Effect<'_>, call: &Call<'_>) -> Result<Response, Dropped> {
        let fault = match effect.kind() {
            Kind::Drop => return Err(Dropped),
            Kind::Unavailable => InjectedFault::ServiceUnavailable,
            Kind::Conflict => {
                let actions = call.targets.actions;
                InjectedFault::TransactionConflict { actions, position: effect.choose(actions) }
            }
            Kind::Throttle => self.throttled(call).await,
            _ => InjectedFault::InternalServerError,
        };
        Ok(fault.into_response(call.operation))
    }

    /// Requests for items are throttled by the table's billing mode, others by their number.
    async fn throttled(&self, call: &Call<'_>) -> InjectedFault<'static> {
        let Call { operation, namespace, targets } = call;
        let engine = self.instance().database.engine().clone();
        let mut billing_mode = None;
        if let Some(name) = targets.tables.first().filter(|_| targets::is_about_items(*operation)) {
            let name = TableName { namespace: Arc::clone(namespace), name: name.clone() };
            billing_mode = engine.table(&name).await.ok().map(|it| it.definition().billing_mode);
        }
        InjectedFault::Throttled { billing_mode, index: targets.index.is_some() }
    }

    /// Lets the database do the work, as far as the table's state and the plan allow it.
    async fn work(
        &self,
        plan: &Plan<'_>,
        call: &Call<'_>,
        circumstances: Circumstances,
        mut body: Bytes,
        mut request: Value,
    ) -> Result<Response, Dropped> {
        let Call { operation, namespace, targets } = call;
        let operation = *operation;
        let _open = self.replacing.read().await;
        let instance = self.instance();
        let now_ms = instance.database.engine().clock().now_ms();
        let status = match self.states.meet(operation, namespace, &targets.tables, now_ms) {
            Met::Answer(response) => return Ok(response),
            Met::Status(status) => Some(status),
            Met::Nothing => None,
        };
        let held = HeldBack::take(operation, &mut request, |table| plan.is_unprocessed(table));
        if held.is_some() {
            body = request.to_string().into();
        }
        let mut response =
            instance.handler().handle(operation, namespace, circumstances, body).await?;
        if response.error.is_some() {
            return Ok(response);
        }
        if let Some(status) = status {
            edit(&mut response, |answer| {
                let description = answer["Table"].take();
                answer["Table"] = shown(description, status);
            });
        }
        if let Some(held) = held {
            edit(&mut response, |answer| held.give_back(answer));
        }
        if let (Some(_), Some(table)) = (status_after(operation), targets.tables.first())
            && let Some(delay_ms) = self.rules.status_delay_ms(table)
        {
            let until_ms = now_ms.saturating_add(delay_ms);
            let answer = serde_json::from_slice(&response.body).unwrap_or_default();
            self.states.hold(operation, namespace, table, &answer, until_ms);
        }
        Ok(response)
    }
}

/// Changes the JSON of a successful answer.
fn edit(response: &mut Response, change: impl FnOnce(&mut Value)) {
    if let Ok(mut answer) = serde_json::from_slice::<Value>(&response.body) {
        change(&mut answer);
        response.body = answer.to_string().into();
    }
}
