//! Which tables are created, reused, replaced and left alone.

use zenobe_load::{
    Credential, LoadError, LoadProgress, Plan, Target, Workload, drop_table, exchange, prepare, run,
};
use zenobe_testing::{ScriptedReply, ServerProcess, TemporaryDirectory, start_scripted_server};

use crate::support::small_plan;

fn steps(plan: &Plan) -> Vec<LoadProgress> {
    let mut steps = Vec::new();
    let prepared = prepare(plan, &mut |step| steps.push(step)).unwrap();
    assert_eq!(prepared.reused, steps == [LoadProgress::Reused]);
    steps.retain(|step| !matches!(step, LoadProgress::Loading { done, total } if done < total));
    steps
}

#[test]
fn a_table_is_loaded_once_and_replaced_when_it_does_not_fit() {
    let server = ServerProcess::in_memory(&[]);
    let loaded = |total| LoadProgress::Loading { done: total, total };
    for workload in [Workload::Put, Workload::Query, Workload::PutIndexed] {
        let mut plan = small_plan(&server.endpoint(), workload);
        assert_eq!(steps(&plan), [LoadProgress::Creating, loaded(250)]);
        assert_eq!(steps(&plan), [LoadProgress::Reused]);
        run(&plan, &mut |_| ()).unwrap();
        assert_eq!(steps(&plan), [LoadProgress::Reused]);
        plan.items = 60;
        let replaced = [LoadProgress::Replacing, LoadProgress::Creating, loaded(60)];
        assert_eq!(steps(&plan), replaced);
        drop_table(&plan).unwrap();
        drop_table(&plan).unwrap();
        assert_eq!(steps(&plan), [LoadProgress::Creating, loaded(60)]);
    }
    // A table of another shape under the same name still belongs to the generator.
    let mut plan = small_plan(&server.endpoint(), Workload::Query);
    plan.table = "zenobe-bench-indexed".into();
    assert_eq!(steps(&plan)[0], LoadProgress::Replacing);
    plan.workload = Workload::Get;
    assert_eq!(steps(&plan)[0], LoadProgress::Replacing);
}

#[test]
fn a_table_of_somebody_else_is_left_alone() {
    let server = ServerProcess::in_memory(&[]);
    let plan = small_plan(&server.endpoint(), Workload::Put);
    for (key, kind) in [("pk", "S"), ("id", "N")] {
        let create = format!(
            r#"{{"TableName":"zenobe-bench","BillingMode":"PAY_PER_REQUEST",
            "AttributeDefinitions":[{{"AttributeName":"{key}","AttributeType":"{kind}"}}],
            "KeySchema":[{{"AttributeName":"{key}","KeyType":"HASH"}}]}}"#
        );
        assert!(exchange(&plan.target, "CreateTable", create.as_bytes()).unwrap().is_success());
        let refused = prepare(&plan, &mut |step| panic!("{step:?}")).unwrap_err();
        assert!(matches!(refused, LoadError::ForeignTable { .. }), "{refused}");
        let refused = drop_table(&plan).unwrap_err();
        assert!(matches!(refused, LoadError::ForeignTable { .. }), "{refused}");
        let body = br#"{"TableName":"zenobe-bench"}"#;
        assert!(exchange(&plan.target, "DeleteTable", body).unwrap().is_success());
    }
}

#[test]
fn a_table_that_was_changed_is_made_again() {
    let server = ServerProcess::in_memory(&[]);
    let plan = small_plan(&server.endpoint(), Workload::PutIndexed);
    let changes = [
        r#""StreamSpecification":{"StreamEnabled":false}"#,
        r#""GlobalSecondaryIndexUpdates":[{"Delete":{"IndexName":"by-category"}}]"#,
    ];
    for change in changes {
        steps(&plan);
        assert_eq!(steps(&plan), [LoadProgress::Reused]);
        let request = format!(r#"{{"TableName":"{}",{change}}}"#, plan.table);
        assert!(exchange(&plan.target, "UpdateTable", request.as_bytes()).unwrap().is_success());
        assert_eq!(steps(&plan)[0], LoadProgress::Replacing, "{change}");
    }
}

/// Waiting for such a table to become active would take five minutes and reveal nothing.
#[test]
fn an_endpoint_that_describes_no_table_is_rejected_at_once() {
    for body in ["{}", r#"{"Table":{}}"#, "[]", "not JSON"] {
        let address = start_scripted_server(move |_| ScriptedReply::response(200, body));
        let plan = small_plan(&format!("http://{address}"), Workload::Get);
        let refused = prepare(&plan, &mut |step| panic!("{step:?}")).unwrap_err();
        assert!(matches!(refused, LoadError::Unexpected { .. }), "{refused}");
        assert!(refused.to_string().contains(body), "{refused}");
    }
}

#[test]
fn an_item_of_the_same_name_does_not_make_a_table_ours() {
    let server = ServerProcess::in_memory(&[]);
    let plan = small_plan(&server.endpoint(), Workload::Put);
    for (operation, body) in [
        (
            "CreateTable",
            r#"{"TableName":"zenobe-bench","BillingMode":"PAY_PER_REQUEST",
            "AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"}],
            "KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}]}"#,
        ),
        (
            "PutItem",
            r#"{"TableName":"zenobe-bench","Item":{"pk":{"S":"zenobe-bench"},"price":{"N":"7"}}}"#,
        ),
    ] {
        assert!(exchange(&plan.target, operation, body.as_bytes()).unwrap().is_success());
    }
    for refused in [prepare(&plan, &mut |_| ()).map(drop), drop_table(&plan)] {
        assert!(matches!(refused, Err(LoadError::ForeignTable { .. })), "{refused:?}");
    }
}

#[test]
fn signed_requests_are_accepted_where_signatures_are_verified() {
    let directory = TemporaryDirectory::new("signed");
    let keys = directory.secret_file("keys", "someone:secret:token");
    let server = ServerProcess::in_memory(&["--credentials", keys.to_str().unwrap()]);
    let credential = |secret: &str| Credential {
        access_key: "someone".into(),
        secret_key: secret.into(),
        session_token: Some("token".into()),
    };
    let mut plan = small_plan(&server.endpoint(), Workload::YcsbA);
    plan.target = Target::new(&server.endpoint(), "us-east-1", Some(credential("secret"))).unwrap();
    prepare(&plan, &mut |_| ()).unwrap();
    let report = run(&plan, &mut |_| ()).unwrap();
    assert_eq!((report.requests, report.error_count()), (300, 0), "{:?}", report.error_messages);

    plan.target = Target::new(&server.endpoint(), "us-east-1", Some(credential("wrong"))).unwrap();
    let refused = prepare(&plan, &mut |_| ()).unwrap_err();
    assert!(refused.to_string().contains("signature"), "{refused}");
}

#[test]
fn impossible_plans_are_rejected_before_anything_is_sent() {
    let plan = small_plan("http://127.0.0.1:1", Workload::BatchGet);
    let changes: [fn(&mut Plan); 6] = [
        |plan| plan.table = "a b".into(),
        |plan| plan.items = 24,
        |plan| plan.item_bytes = 10,
        |plan| plan.connections = 0,
        |plan| plan.threads = 0,
        |plan| plan.pacing = zenobe_load::Pacing::Open { requests_per_second: 0.0 },
    ];
    for change in changes {
        let mut plan = plan.clone();
        change(&mut plan);
        assert!(matches!(prepare(&plan, &mut |_| ()), Err(LoadError::Plan(_))));
        assert!(matches!(run(&plan, &mut |_| ()), Err(LoadError::Plan(_))));
    }
}
