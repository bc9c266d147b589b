//! What a request meets on its way to the database.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde_json::Value;
use zenobe_api::faults::InjectedFault;
use zenobe_api::{Operation, Response};
use zenobe_engine::command::TableName;
use zenobe_engine::schema::Namespace;
use zenobe_engine::throughput::cause::Throttled;

use super::TestControl;
use super::fault_plan::{FaultPlan, PlannedFailure};
use super::request_subjects::RequestSubjects;
use super::rule::{RuleKind, When};
use super::table_states::{StateEffect, shown, status_after};
use super::tagged::{sets_tags, wrong_tag};
use super::unprocessed::HeldBack;
use crate::dispatch::{Circumstances, Dropped, Handler};
use crate::instance::Instance;

/// A request, and what it is about.
struct Call<'a> {
    operation: Operation,
    namespace: &'a Arc<Namespace>,
    subjects: RequestSubjects,
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
        let is_plain = self.rules.are_empty() && self.states.is_empty() && !sets_tags(operation);
        let request = if is_plain { None } else { serde_json::from_slice::<Value>(&body).ok() };
        let Some(request) = request else {
            let instance = self.hold().await;
            return instance.handler().handle(operation, namespace, circumstances, body).await;
        };
        if let Some((key, error)) = wrong_tag(operation, &request) {
            let (key, problem) = (&key, &error.to_string());
            return Ok(InjectedFault::WrongTag { key, problem }.into_response(operation));
        }
        let call =
            Call { operation, namespace, subjects: RequestSubjects::of(operation, &request) };
        let rules = self.rules.of_tables(namespace, &call.subjects.tables);
        let plan = FaultPlan::of(&rules, operation, &call.subjects);
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

    async fn fail(
        &self,
        effect: &PlannedFailure<'_>,
        call: &Call<'_>,
    ) -> Result<Response, Dropped> {
        let fault = match effect.kind() {
            RuleKind::Drop => return Err(Dropped),
            RuleKind::Unavailable => InjectedFault::ServiceUnavailable,
            RuleKind::Conflict => {
                let actions = call.subjects.actions;
                InjectedFault::TransactionConflict { actions, position: effect.choose(actions) }
            }
            RuleKind::Throttle => self.throttled(call).await,
            _ => InjectedFault::InternalServerError,
        };
        let response = fault.into_response(call.operation);
        if response.status >= 500 {
            self.count_error(call);
        }
        Ok(response)
    }

    /// Lets the metrics of tables show an error. The request never told them what it is about.
    fn count_error(&self, call: &Call<'_>) {
        let instance = self.instance();
        let Some(traffic) = &instance.observability.traffic else { return };
        let engine = instance.database.engine();
        let known = engine.known_tables();
        for name in &call.subjects.tables {
            let table = TableName { namespace: Arc::clone(call.namespace), name: name.clone() };
            if engine.is_metering() && known.contains_key(&table) {
                traffic.note_injected_error(table, call.operation);
            }
        }
    }

    /// Requests for items are throttled by the table's capacity, others by their number.
    async fn throttled(&self, call: &Call<'_>) -> InjectedFault<'static> {
        let Call { namespace, subjects, .. } = call;
        let engine = self.instance().database.engine().clone();
        if let (Some(name), Some(access)) = (subjects.tables.first(), subjects.access) {
            let name = TableName { namespace: Arc::clone(namespace), name: name.clone() };
            if let Ok(table) = engine.table(&name).await {
                let index = subjects.index.as_deref();
                return InjectedFault::Throttled(Throttled::by(&table, index, access));
            }
        }
        InjectedFault::ControlPlaneThrottled
    }

    /// Lets the database do the work, as far as the table's state and the plan allow it.
    async fn work(
        &self,
        plan: &FaultPlan<'_>,
        call: &Call<'_>,
        circumstances: Circumstances,
        mut body: Bytes,
        mut request: Value,
    ) -> Result<Response, Dropped> {
        let Call { operation, namespace, subjects } = call;
        let operation = *operation;
        let instance = self.hold().await;
        let now_ms = instance.database.engine().clock().now_ms();
        let status = match self.states.effect_on(operation, namespace, &subjects.tables, now_ms) {
            StateEffect::Answer(response) => return Ok(response),
            StateEffect::Status(status) => Some(status),
            StateEffect::Nothing => None,
        };
        let name = subjects.tables.first().filter(|_| status_after(operation).is_some());
        let name =
            name.map(|name| TableName { namespace: Arc::clone(namespace), name: name.clone() });
        // A table that is gone afterwards has its tags only now, and a new one only afterwards.
        let mut of_status = name.as_ref().map_or_else(Vec::new, |name| self.rules.of_status(name));
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
        self.change_shards(&instance, plan, call).await;
        let Some(name) = name else { return Ok(response) };
        if operation != Operation::DeleteTable {
            of_status = self.rules.of_status(&name);
        }
        let delays = of_status.iter().filter_map(|rule| rule.fire()).map(|fired| fired.delay_ms());
        if let Some(delay_ms) = delays.max() {
            let until_ms = now_ms.saturating_add(delay_ms);
            let answer = serde_json::from_slice(&response.body).unwrap_or_default();
            self.states.hold(operation, namespace, &name.name, &answer, until_ms);
        }
        Ok(response)
    }
}

impl TestControl {
    /// Closes the shards of streams behind a write, as the plan says.
    async fn change_shards(&self, instance: &Instance, plan: &FaultPlan<'_>, call: &Call<'_>) {
        let engine = instance.database.engine();
        let fired = plan.of_shards.iter().filter(|rule| rule.fire().is_some());
        for rule in fired.map(|fired| &fired.rule) {
            for table in call.subjects.tables.iter().filter(|it| rule.matches_table(it, None)) {
                let namespace = Arc::clone(call.namespace);
                let name = TableName { namespace, name: table.clone() };
                // A table without a stream, or with as many shards as it may have, stays as it is.
                let changed = match rule.kind {
                    RuleKind::Split => engine.split_stream(&name).await.map(drop),
                    _ => engine.roll_over_stream(&name).await.map(drop),
                };
                if let Err(error) = changed {
                    tracing::warn!(%error, "the stream of table {table} keeps its shards");
                }
            }
        }
    }
}

/// Changes the JSON of a successful answer.
fn edit(response: &mut Response, change: impl FnOnce(&mut Value)) {
    if let Ok(mut answer) = serde_json::from_slice::<Value>(&response.body) {
        change(&mut answer);
        response.body = answer.to_string().into();
    }
}
