//! CloudWatch as its callers see it, through the protocols.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value as Json, json};
use zenobe_engine::EngineOptions;
use zenobe_engine::clock::{Clock, ManualClock};
use zenobe_store::memory::MemoryStore;

use super::*;
use crate::traffic::{TrafficMinute, TrafficSink};

/// 2026-11-18T03:04:00Z
const NOW_S: u64 = 1_794_971_040;

struct Fixture {
    cloudwatch: CloudWatch,
    clock: Arc<ManualClock>,
    namespace: Arc<Namespace>,
}

impl Fixture {
    async fn new() -> Fixture {
        Fixture::with_policies(None).await
    }

    async fn with_policies(policies: Option<Arc<dyn PolicyAlarms>>) -> Fixture {
        let clock = Arc::new(ManualClock::new(NOW_S * 1_000));
        let options =
            EngineOptions { clock: clock.clone() as Arc<dyn Clock>, ..EngineOptions::default() };
        let engine = Engine::open(Arc::new(MemoryStore::default()), options).await.unwrap();
        let namespace = Arc::new(Namespace { account: "1".into(), region: "r".into() });
        Fixture { cloudwatch: CloudWatch::new(engine, 15, None, policies), clock, namespace }
    }

    /// The answer, or the error's code and message.
    async fn call(&self, operation: &str, request: Json) -> Result<Json, (String, String)> {
        let body = request.to_string().into_bytes();
        let answer = self
            .cloudwatch
            .answer(Request {
                protocol: Protocol::Json,
                operation,
                namespace: &self.namespace,
                body: &body,
                request_id: "id",
            })
            .await;
        let body: Json = serde_json::from_slice(&answer.body).unwrap();
        if answer.status == 200 {
            return Ok(body);
        }
        let (_, code) =
            answer.headers.iter().find(|(name, _)| *name == "x-amzn-query-error").unwrap();
        let code = code.split(';').next().unwrap().to_owned();
        Err((code, body["message"].as_str().unwrap().to_owned()))
    }

    async fn put(&self, name: &str, value: f64) {
        let datum = json!({"MetricName": name, "Value": value, "Dimensions": [{"Name": "d", "Value": "x"}]});
        let request = json!({"Namespace": "Test", "MetricData": [datum]});
        assert_eq!(self.call("PutMetricData", request).await, Ok(json!({})));
    }

    /// Lets a minute pass.
    async fn minute(&self) {
        self.clock.advance_ms(60_000);
        let start_ms = self.clock.now_ms() - 60_000;
        let minute = TrafficMinute { start_ms, ..TrafficMinute::default() };
        self.cloudwatch.store_minute(&minute).await;
    }

    async fn state(&self, alarm: &str) -> String {
        let request = json!({"AlarmNames": [alarm]});
        let alarms = self.call("DescribeAlarms", request).await.unwrap();
        alarms["MetricAlarms"][0]["StateValue"].as_str().unwrap().to_owned()
    }
}

/// A policy of table `Orders` with an alarm for more than 210 read units in each of two minutes.
struct OnePolicy;

const OF_POLICY: &str = "TargetTracking-table/Orders-AlarmHigh-1";

impl PolicyAlarms for OnePolicy {
    fn alarms<'a>(
        &'a self,
        _: &'a Arc<Namespace>,
    ) -> BoxFuture<'a, zenobe_engine::error::Result<Vec<PolicyAlarm>>> {
        let alarm = PolicyAlarm {
            name: OF_POLICY.to_owned(),
            description: "DO NOT EDIT OR DELETE.".to_owned(),
            action: "arn:aws:autoscaling:r:1:scalingPolicy:u".to_owned(),
            configured_ms: NOW_S * 1_000,
            table: "Orders".to_owned(),
            index: None,
            metric: "ConsumedReadCapacityUnits",
            is_average: false,
            period_s: 60,
            periods: 2,
            threshold: 210.0,
            is_high: true,
        };
        std::future::ready(Ok(vec![alarm])).boxed()
    }
}

fn metric(name: &str, statistic: &str) -> Json {
    let metric = json!({"Namespace": "Test", "MetricName": name, "Dimensions": [{"Name": "d", "Value": "x"}]});
    json!({"Metric": metric, "Period": 60, "Stat": statistic})
}

fn alarm(name: &str) -> Json {
    json!({
        "AlarmName": name, "Namespace": "Test", "MetricName": "a", "Dimensions": [{"Name": "d", "Value": "x"}],
        "Statistic": "Sum", "Period": 60, "EvaluationPeriods": 2, "Threshold": 5.0,
        "ComparisonOperator": "GreaterThanThreshold", "AlarmActions": ["arn:aws:sns:r:1:topic"],
        "Tags": [{"Key": "k", "Value": "v"}],
    })
}

#[tokio::test]
async fn statistics_and_math_of_custom_metrics() {
    let fixture = Fixture::new().await;
    for minute in 0..3 {
        fixture.put("a", 4.0).await;
        fixture.put("a", f64::from(minute)).await;
        fixture.put("b", 10.0).await;
        fixture.clock.advance_ms(60_000);
    }
    let span = json!({"StartTime": NOW_S, "EndTime": NOW_S + 180});
    let mut request = json!({
        "Namespace": "Test", "MetricName": "a", "Dimensions": [{"Name": "d", "Value": "x"}], "Period": 120,
        "Statistics": ["Sum", "Average", "SampleCount", "Minimum", "Maximum"],
    });
    request.as_object_mut().unwrap().extend(span.as_object().unwrap().clone());
    let found = fixture.call("GetMetricStatistics", request).await.unwrap();
    let expected = json!({"Label": "a", "Datapoints": [
        {"Timestamp": NOW_S, "Sum": 9.0, "Average": 2.25, "SampleCount": 4.0, "Minimum": 0.0, "Maximum": 4.0, "Unit": "None"},
        {"Timestamp": NOW_S + 120, "Sum": 6.0, "Average": 3.0, "SampleCount": 2.0, "Minimum": 2.0, "Maximum": 4.0, "Unit": "None"},
    ]});
    assert_eq!(found, expected);

    let mut request = json!({"MaxDatapoints": 4, "ScanBy": "TimestampAscending", "MetricDataQueries": [
        {"Id": "m1", "MetricStat": metric("a", "Sum"), "Label": "${PROP('Dim.d')} ${MAX}"},
        {"Id": "m2", "MetricStat": metric("b", "p50"), "ReturnData": false},
        {"Id": "e1", "Expression": "m1/m2*100"},
    ]});
    request.as_object_mut().unwrap().extend(span.as_object().unwrap().clone());
    let first = fixture.call("GetMetricData", request.clone()).await.unwrap();
    let results = &first["MetricDataResults"];
    assert_eq!(results[0]["Values"], json!([4.0, 5.0, 6.0]));
    assert_eq!(results[0]["Label"], "x 6");
    assert_eq!(results[0]["StatusCode"], "Complete");
    assert_eq!(
        (&results[1]["Values"], &results[1]["StatusCode"]),
        (&json!([40.0]), &json!("PartialData"))
    );
    request["NextToken"] = first["NextToken"].clone();
    let second = fixture.call("GetMetricData", request.clone()).await.unwrap();
    let results = &second["MetricDataResults"];
    assert_eq!((&results[0]["Id"], &results[0]["Values"]), (&json!("e1"), &json!([50.0, 60.0])));
    assert_eq!((&results[0]["StatusCode"], second.get("NextToken")), (&json!("Complete"), None));
    request["NextToken"] = json!("zz");
    assert_eq!(fixture.call("GetMetricData", request).await.unwrap_err().0, "InvalidNextToken");

    let listed =
        fixture.call("ListMetrics", json!({"Namespace": "Test", "MetricName": "b"})).await.unwrap();
    let dimensions = json!([{"Name": "d", "Value": "x"}]);
    let expected =
        json!({"Metrics": [{"Namespace": "Test", "MetricName": "b", "Dimensions": dimensions}]});
    assert_eq!(listed, expected);
    let others = json!({"Dimensions": [{"Name": "e"}]});
    assert_eq!(fixture.call("ListMetrics", others).await, Ok(json!({"Metrics": []})));
}

#[tokio::test]
async fn an_alarm_follows_its_metric() {
    let fixture = Fixture::new().await;
    assert_eq!(fixture.call("PutMetricAlarm", alarm("high")).await, Ok(json!({})));
    assert_eq!(fixture.state("high").await, "INSUFFICIENT_DATA");
    for value in [9.0, 9.0] {
        fixture.put("a", value).await;
        fixture.minute().await;
    }
    assert_eq!(fixture.state("high").await, "ALARM");
    let described = fixture.call("DescribeAlarms", json!({"StateValue": "ALARM"})).await.unwrap();
    let described = &described["MetricAlarms"][0];
    assert_eq!(described["AlarmArn"], "arn:aws:cloudwatch:r:1:alarm:high");
    let reason = "Threshold Crossed: 1 out of the last 1 datapoints [9.0 (18/11/26 03:04:00)] was greater than \
        the threshold (5.0) (minimum 2 datapoints for OK -> ALARM transition). 1 missing datapoints were treated as the alarm says.";
    assert_eq!(described["StateReason"], reason);
    let data: Json = serde_json::from_str(described["StateReasonData"].as_str().unwrap()).unwrap();
    assert_eq!((&data["recentDatapoints"], &data["period"]), (&json!([9.0]), &json!(60)));
    fixture.put("a", 1.0).await;
    fixture.minute().await;
    assert_eq!(fixture.state("high").await, "OK");
    for _ in 0..4 {
        fixture.minute().await;
    }
    assert_eq!(fixture.state("high").await, "INSUFFICIENT_DATA");
    let request = json!({"AlarmName": "high", "ScanBy": "TimestampAscending"});
    let history = fixture.call("DescribeAlarmHistory", request).await.unwrap();
    let summaries = history["AlarmHistoryItems"].as_array().unwrap().iter();
    let summaries: Vec<_> =
        summaries.map(|item| item["HistorySummary"].as_str().unwrap()).collect();
    let expected = [
        "Alarm \"high\" created",
        "Alarm updated from INSUFFICIENT_DATA to ALARM",
        "Failed to execute action arn:aws:sns:r:1:topic",
        "Alarm updated from ALARM to OK",
        "Alarm updated from OK to INSUFFICIENT_DATA",
    ];
    assert_eq!(summaries, expected);
    let counts = fixture.cloudwatch.counts();
    assert_eq!(counts.alarm_actions_skipped, 1);
    assert_eq!(counts.alarm_transitions, [("INSUFFICIENT_DATA", 1), ("ALARM", 1), ("OK", 1)]);
}

#[tokio::test]
async fn alarms_are_managed() {
    let fixture = Fixture::new().await;
    for name in ["a1", "a2", "b1"] {
        fixture.call("PutMetricAlarm", alarm(name)).await.unwrap();
    }
    let names = |found: &Json| -> Vec<String> {
        let alarms = found["MetricAlarms"].as_array().unwrap().iter();
        alarms.map(|alarm| alarm["AlarmName"].as_str().unwrap().to_owned()).collect()
    };
    let request = json!({"AlarmNamePrefix": "a", "MaxRecords": 1});
    let first = fixture.call("DescribeAlarms", request).await.unwrap();
    let request = json!({"AlarmNamePrefix": "a", "NextToken": first["NextToken"]});
    let second = fixture.call("DescribeAlarms", request).await.unwrap();
    assert_eq!((names(&first), names(&second)), (vec!["a1".to_owned()], vec!["a2".to_owned()]));
    assert_eq!(second.get("NextToken"), None);
    let composite = json!({"AlarmTypes": ["CompositeAlarm"]});
    assert!(names(&fixture.call("DescribeAlarms", composite).await.unwrap()).is_empty());
    let mut request = json!({"Namespace": "Test", "MetricName": "a", "Dimensions": [{"Name": "d", "Value": "x"}]});
    let found = fixture.call("DescribeAlarmsForMetric", request.clone()).await.unwrap();
    assert_eq!(names(&found).len(), 3);
    // Alarms over expressions with the metric are not among them.
    let metric = json!({"Metric": request.clone(), "Period": 60, "Stat": "Sum"});
    let expression = json!({
        "AlarmName": "expression", "EvaluationPeriods": 1, "Threshold": 1, "ComparisonOperator": "GreaterThanThreshold",
        "Metrics": [{"Id": "m", "MetricStat": metric, "ReturnData": false}, {"Id": "e", "Expression": "m / 60"}],
    });
    fixture.call("PutMetricAlarm", expression).await.unwrap();
    let found = fixture.call("DescribeAlarmsForMetric", request.clone()).await.unwrap();
    assert_eq!(names(&found), ["a1", "a2", "b1"]);
    fixture.call("DeleteAlarms", json!({"AlarmNames": ["expression"]})).await.unwrap();
    request["Statistic"] = json!("Average");
    assert!(names(&fixture.call("DescribeAlarmsForMetric", request).await.unwrap()).is_empty());

    fixture.call("DisableAlarmActions", json!({"AlarmNames": ["a1", "nobody"]})).await.unwrap();
    let state = json!({"AlarmName": "a1", "StateValue": "ALARM", "StateReason": "test", "StateReasonData": "{}"});
    fixture.call("SetAlarmState", state).await.unwrap();
    let found = fixture.call("DescribeAlarms", json!({"AlarmNames": ["a1"]})).await.unwrap();
    let found = &found["MetricAlarms"][0];
    assert_eq!((&found["ActionsEnabled"], &found["StateValue"]), (&json!(false), &json!("ALARM")));
    assert_eq!(fixture.cloudwatch.counts().alarm_actions_skipped, 0);

    let arn = json!("arn:aws:cloudwatch:r:1:alarm:a1");
    let tags = json!([{"Key": "new", "Value": ""}]);
    fixture.call("TagResource", json!({"ResourceARN": arn, "Tags": tags})).await.unwrap();
    fixture.call("UntagResource", json!({"ResourceARN": arn, "TagKeys": ["k"]})).await.unwrap();
    let listed = fixture.call("ListTagsForResource", json!({"ResourceARN": arn})).await;
    assert_eq!(listed, Ok(json!({"Tags": tags})));
    // Replacing an alarm keeps its state and its tags.
    fixture.call("PutMetricAlarm", alarm("a1")).await.unwrap();
    assert_eq!(fixture.state("a1").await, "ALARM");
    assert_eq!(fixture.call("ListTagsForResource", json!({"ResourceARN": arn})).await, listed);

    fixture.call("DeleteAlarms", json!({"AlarmNames": ["a1", "a2", "nobody"]})).await.unwrap();
    assert_eq!(names(&fixture.call("DescribeAlarms", json!({})).await.unwrap()), ["b1"]);
}

#[tokio::test]
async fn errors_have_cloudwatchs_codes() {
    let fixture = Fixture::new().await;
    let with = |mut request: Json, name: &str, value: Json| {
        request[name] = value;
        request
    };
    let statistics = json!({
        "Namespace": "N", "MetricName": "m", "StartTime": 0, "EndTime": 3_600, "Period": 60, "Statistics": ["Sum"],
    });
    let datum = |datum: Json| json!({"Namespace": "N", "MetricData": [datum]});
    let dimension = |name: &str, value: &str| json!({"MetricName": "m", "Value": 1, "Dimensions": [{"Name": name, "Value": value}]});
    let cases = [
        ("Nothing", json!({}), "InvalidAction"),
        (
            "PutMetricData",
            json!({"Namespace": "AWS/Mine", "MetricData": []}),
            "InvalidParameterValue",
        ),
        ("PutMetricData", json!({"Namespace": "N"}), "MissingParameter"),
        ("PutMetricData", datum(json!({"MetricName": "m"})), "InvalidParameterCombination"),
        (
            "PutMetricData",
            datum(json!({"MetricName": "m", "Value": 1, "Values": [1]})),
            "InvalidParameterCombination",
        ),
        (
            "PutMetricData",
            datum(json!({"MetricName": "m", "Value": 1e200})),
            "InvalidParameterValue",
        ),
        (
            "PutMetricData",
            datum(json!({"MetricName": "m", "Value": 1, "Timestamp": 5})),
            "InvalidParameterValue",
        ),
        ("PutMetricData", datum(json!({"MetricName": "m", "Value": "1"})), "MalformedInput"),
        (
            "PutMetricData",
            datum(json!({"MetricName": "m", "Value": "NaN"})),
            "InvalidParameterValue",
        ),
        (
            "PutMetricData",
            datum(json!({"MetricName": "m", "Value": 1, "Unit": "Apples"})),
            "InvalidParameterValue",
        ),
        ("PutMetricData", datum(dimension("d", " ")), "MissingParameter"),
        ("PutMetricData", datum(dimension(" ", "x")), "MissingParameter"),
        ("PutMetricData", datum(dimension(":d", "x")), "InvalidParameterValue"),
        ("PutMetricData", datum(dimension("d", "é")), "InvalidParameterValue"),
        ("PutMetricData", datum(dimension("d", "a\u{7}")), "InvalidParameterValue"),
        (
            "PutMetricAlarm",
            with(alarm("x"), "Dimensions", json!([{"Name": "d", "Value": " "}])),
            "MissingParameter",
        ),
        (
            "GetMetricStatistics",
            with(statistics.clone(), "Period", json!(45)),
            "InvalidParameterValue",
        ),
        (
            "GetMetricStatistics",
            with(statistics.clone(), "EndTime", json!(0)),
            "InvalidParameterValue",
        ),
        (
            "GetMetricStatistics",
            with(statistics.clone(), "EndTime", json!(864_000)),
            "InvalidParameterCombination",
        ),
        (
            "GetMetricStatistics",
            with(statistics.clone(), "Statistics", json!(["Mean"])),
            "ValidationError",
        ),
        (
            "GetMetricStatistics",
            with(statistics.clone(), "Statistics", json!([])),
            "InvalidParameterCombination",
        ),
        ("GetMetricStatistics", with(statistics, "Unit", json!("Apples")), "ValidationError"),
        ("PutMetricAlarm", json!({}), "MissingParameter"),
        ("PutMetricAlarm", alarm("a\u{7}"), "InvalidParameterValue"),
        (
            "PutMetricAlarm",
            with(alarm("x"), "ComparisonOperator", json!("GreaterThanUpperThreshold")),
            "ValidationError",
        ),
        ("PutMetricAlarm", with(alarm("x"), "EvaluationPeriods", json!(5_000)), "ValidationError"),
        ("PutMetricAlarm", with(alarm("x"), "DatapointsToAlarm", json!(3)), "ValidationError"),
        ("PutMetricAlarm", with(alarm("x"), "Period", json!(5)), "ValidationError"),
        ("PutMetricAlarm", with(alarm("x"), "TreatMissingData", json!("maybe")), "ValidationError"),
        (
            "PutMetricAlarm",
            with(alarm("x"), "ExtendedStatistic", json!("p99")),
            "InvalidParameterCombination",
        ),
        ("PutMetricAlarm", with(alarm("x"), "AlarmActions", json!(["me"])), "ValidationError"),
        (
            "SetAlarmState",
            json!({"AlarmName": "x", "StateValue": "OK", "StateReason": ""}),
            "ResourceNotFound",
        ),
        (
            "SetAlarmState",
            json!({"AlarmName": "x", "StateValue": "FINE", "StateReason": ""}),
            "ValidationError",
        ),
        (
            "DescribeAlarms",
            json!({"AlarmNames": ["a"], "AlarmNamePrefix": "a"}),
            "InvalidParameterCombination",
        ),
        ("DescribeAlarms", json!({"NextToken": "?"}), "InvalidNextToken"),
        (
            "ListTagsForResource",
            json!({"ResourceARN": "arn:aws:cloudwatch:r:1:alarm:x"}),
            "ResourceNotFoundException",
        ),
        (
            "GetInsightRuleReport",
            json!({"RuleName": "r", "StartTime": 0, "EndTime": 60, "Period": 60}),
            "ResourceNotFoundException",
        ),
        (
            "GetMetricData",
            json!({"StartTime": 0, "EndTime": 60, "MetricDataQueries": [{"Id": "e", "Expression": "e"}]}),
            "ValidationError",
        ),
        (
            "GetMetricData",
            json!({"StartTime": 0, "EndTime": 60, "MetricDataQueries": [{"Id": "e", "Expression": "m1"}]}),
            "ValidationError",
        ),
    ];
    for (operation, request, code) in cases {
        let failed = fixture.call(operation, request.clone()).await;
        assert_eq!(
            failed.as_ref().map_err(|(code, _)| code.as_str()),
            Err(code),
            "{operation} {request}: {failed:?}"
        );
    }
}

/// As CloudWatch does, faults say where in the request a member is.
#[tokio::test]
async fn faults_name_the_place_of_a_member() {
    let fixture = Fixture::new().await;
    let dimensions = |second: Json| json!([{"Name": "z", "Value": "1"}, second]);
    let with = |mut request: Json, name: &str, value: Json| {
        request[name] = value;
        request
    };
    let data = |second: Json| {
        let datum = json!({"MetricName": "m", "Value": 1});
        let wrong = with(datum.clone(), "Dimensions", dimensions(second));
        json!({"Namespace": "N", "MetricData": [datum, wrong]})
    };
    let metric = json!({"Namespace": "N", "MetricName": "m"});
    let metric = with(metric, "Dimensions", dimensions(json!({"Name": "a", "Value": " "})));
    let statistic = json!({"Metric": metric, "Period": 60, "Stat": "Sum"});
    let mut of_queries = alarm("x");
    let single = ["MetricName", "Namespace", "Statistic", "Period"];
    single.iter().for_each(|name| _ = of_queries.as_object_mut().unwrap().remove(*name));
    for (operation, request, expected) in [
        (
            "PutMetricData",
            data(json!({"Name": "a"})),
            "The parameter MetricData.member.2.Dimensions.member.2.Value is required.",
        ),
        (
            "PutMetricData",
            data(json!({"Name": ":a", "Value": "1"})),
            "The value :a for parameter MetricData.member.2.Dimensions.member.2.Name is invalid.",
        ),
        (
            "PutMetricData",
            json!({"Namespace": "N", "MetricData": [{"Value": 1}]}),
            "The parameter MetricData.member.1.MetricName is required.",
        ),
        (
            "PutMetricAlarm",
            with(alarm("x"), "Dimensions", dimensions(json!({"Name": " ", "Value": "1"}))),
            "The parameter Dimensions.member.2.Name is required.",
        ),
        (
            "PutMetricAlarm",
            with(of_queries, "Metrics", json!([{"Id": "m", "MetricStat": statistic}])),
            "The parameter Metrics.member.1.MetricStat.Metric.Dimensions.member.2.Value is required.",
        ),
        (
            "GetMetricData",
            json!({"StartTime": 0, "EndTime": 60, "MetricDataQueries": [{"Id": "m", "MetricStat": {}}]}),
            "The parameter MetricDataQueries.member.1.MetricStat.Metric is required.",
        ),
    ] {
        let failed = fixture.call(operation, request.clone()).await;
        let message = failed.as_ref().map_err(|(_, message)| message.as_str());
        assert_eq!(message, Err(expected), "{operation} {request}");
    }
}

#[tokio::test]
async fn the_texts_of_alarms_are_bounded() {
    let fixture = Fixture::new().await;
    let with = |name: &str, value: Json| {
        let mut request = alarm("a");
        request[name] = value;
        request
    };
    let arn = |length: usize| json!([format!("arn:{}", "x".repeat(length - 4))]);
    fixture.call("PutMetricAlarm", with("OKActions", arn(1_024))).await.unwrap();
    let on = |queries: Json| {
        json!({
            "AlarmName": "q", "Metrics": queries, "EvaluationPeriods": 1, "Threshold": 1,
            "ComparisonOperator": "GreaterThanThreshold",
        })
    };
    let labelled =
        |length| on(json!([{"Id": "e", "Expression": "1", "Label": "x".repeat(length)}]));
    fixture.call("PutMetricAlarm", labelled(2_048)).await.unwrap();
    let mut large = doubling(20);
    large.as_array_mut().unwrap().iter_mut().for_each(|it| it["Label"] = json!("é".repeat(2_000)));
    for request in [with("OKActions", arn(1_025)), labelled(2_049), on(large)] {
        let (code, message) = fixture.call("PutMetricAlarm", request).await.unwrap_err();
        assert!(["InvalidParameterValue", "ValidationError"].contains(&code.as_str()), "{message}");
    }
}

/// Expressions, each of which has the series of the one before it twice.
fn doubling(count: usize) -> Json {
    let mut queries =
        vec![json!({"Id": "e0", "Expression": "TIME_SERIES(1)", "ReturnData": false})];
    for number in 1..count {
        let before = number - 1;
        let expression = format!("[e{before}, e{before}]");
        let is_last = number + 1 == count;
        queries.push(
            json!({"Id": format!("e{number}"), "Expression": expression, "ReturnData": is_last}),
        );
    }
    json!(queries)
}

#[tokio::test]
async fn expressions_cannot_fill_the_memory() {
    let fixture = Fixture::new().await;
    let long = vec![json!({"Id": "e", "Expression": "TIME_SERIES(1)"}); 3];
    let long = long.into_iter().enumerate().map(|(number, mut query)| {
        query["Id"] = json!(format!("e{number}"));
        query
    });
    for queries in [doubling(41), long.collect()] {
        let request = json!({
            "StartTime": NOW_S - 450_000 * 60, "EndTime": NOW_S, "MetricDataQueries": queries,
        });
        let (code, message) = fixture.call("GetMetricData", request).await.unwrap_err();
        assert_eq!(code, "ValidationError");
        assert!(message.contains("compute too many values"), "{message}");
    }
}

#[tokio::test]
async fn an_alarm_that_computes_too_much_keeps_its_state() {
    let fixture = Fixture::new().await;
    let alarm_on = |name: &str, queries: Json| {
        json!({
            "AlarmName": name, "Metrics": queries, "EvaluationPeriods": 1, "Threshold": 0.5,
            "ComparisonOperator": "GreaterThanThreshold",
        })
    };
    fixture.call("PutMetricAlarm", alarm_on("greedy", doubling(20))).await.unwrap();
    fixture.call("PutMetricAlarm", alarm_on("modest", doubling(2))).await.unwrap();
    fixture.minute().await;
    assert_eq!(fixture.state("greedy").await, "INSUFFICIENT_DATA");
    assert_eq!(fixture.state("modest").await, "ALARM");
    let failed = fixture.call("PutMetricAlarm", alarm_on("long", doubling(21))).await.unwrap_err();
    assert_eq!(failed.0, "ValidationError");
}

#[test]
fn the_page_on_compatibility_lists_the_operations() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../COMPAT.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, section) = page.split_once("\n## CloudWatch\n").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| "));
    let names: Vec<&str> = rows.filter_map(|row| row.split(" | ").next()).skip(1).collect();
    assert_eq!(names, OPERATIONS);
}

/// They are listed among the others, by name, and with the state that their metrics say.
#[tokio::test]
async fn alarms_of_scaling_policies_are_shown() {
    let fixture = Fixture::with_policies(Some(Arc::new(OnePolicy))).await;
    for name in ["A", "Z"] {
        assert_eq!(fixture.call("PutMetricAlarm", alarm(name)).await, Ok(json!({})));
    }
    let names = async |request: Json| {
        let answer = fixture.call("DescribeAlarms", request).await.unwrap();
        let alarms = answer["MetricAlarms"].as_array().unwrap().iter();
        let names: Vec<Json> = alarms.map(|alarm| alarm["AlarmName"].clone()).collect();
        (names, answer["NextToken"].clone())
    };
    assert_eq!(names(json!({})).await.0, ["A", OF_POLICY, "Z"]);
    let mut request = json!({"MaxRecords": 1});
    let mut pages = Vec::new();
    loop {
        let (mut page, next) = names(request.clone()).await;
        pages.append(&mut page);
        match next {
            Json::Null => break,
            next => request["NextToken"] = next,
        }
    }
    assert_eq!(pages, ["A", OF_POLICY, "Z"]);
    for (request, is_shown) in [
        (json!({"AlarmNamePrefix": "TargetTracking-table/Orders"}), true),
        (json!({"AlarmNames": ["Z"]}), false),
        (json!({"ActionPrefix": "arn:aws:autoscaling"}), true),
        (json!({"AlarmTypes": ["CompositeAlarm"]}), false),
        (json!({"StateValue": "INSUFFICIENT_DATA", "AlarmNames": [OF_POLICY]}), true),
        (json!({"StateValue": "ALARM"}), false),
    ] {
        let shown = names(request.clone()).await.0.contains(&json!(OF_POLICY));
        assert_eq!(shown, is_shown, "{request}");
    }
    let metric = json!({
        "Namespace": "AWS/DynamoDB",
        "MetricName": "ConsumedReadCapacityUnits",
        "Dimensions": [{"Name": "TableName", "Value": "Orders"}],
    });
    let of_metric = fixture.call("DescribeAlarmsForMetric", metric).await.unwrap();
    let shown = &of_metric["MetricAlarms"][0];
    assert_eq!(shown["AlarmName"], OF_POLICY);
    assert_eq!(shown["AlarmArn"], format!("arn:aws:cloudwatch:r:1:alarm:{OF_POLICY}"));
    assert_eq!((&shown["Threshold"], &shown["Statistic"]), (&json!(210.0), &json!("Sum")));
}
