//! `zenobe sql` as a process: from the command line, from files and from standard input.

use std::fs;
use std::io::Write;
use std::process::{Command, Output, Stdio};

use serde_json::json;
use zenobe_testing::{ServerProcess, TemporaryDirectory};

use crate::commands::{check_refusal, zenobe};
use crate::triggers::serve;

struct Music {
    process: ServerProcess,
    directory: TemporaryDirectory,
}

impl Music {
    /// A server with a table of three songs.
    fn start() -> Music {
        let process = serve(&["--memory"]);
        let mut client = process.client();
        client.expect(
            "CreateTable",
            &json!({
                "TableName": "Music",
                "AttributeDefinitions": [
                    {"AttributeName": "Artist", "AttributeType": "S"},
                    {"AttributeName": "Song", "AttributeType": "S"},
                    {"AttributeName": "Year", "AttributeType": "N"},
                ],
                "KeySchema": [
                    {"AttributeName": "Artist", "KeyType": "HASH"},
                    {"AttributeName": "Song", "KeyType": "RANGE"},
                ],
                "GlobalSecondaryIndexes": [{
                    "IndexName": "by-year",
                    "KeySchema": [{"AttributeName": "Year", "KeyType": "HASH"}],
                    "Projection": {"ProjectionType": "ALL"},
                }],
                "BillingMode": "PAY_PER_REQUEST",
            }),
        );
        let music = Music { process, directory: TemporaryDirectory::new("sql") };
        let inserts = "
            INSERT INTO Music VALUE {'Artist': 'Acme', 'Song': 'One; two', 'Year': 2001, 'Tags': <<'a', 'b'>>};
            INSERT INTO Music VALUE {'Artist': 'Acme', 'Song': 'Three', 'Year': 2002, 'Note': null};
            -- A comment; with a semicolon.
            INSERT INTO Music VALUE {'Artist': 'Bolt', 'Song': 'It''s \"four\"', 'Plays': 12345678901234567890.5}";
        assert_eq!(
            music.run(&["-c", inserts]),
            "(done, 2 units)\n(done, 2 units)\n(done, 1 unit)\n"
        );
        music
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let server = self.process.endpoint();
        let mut command = zenobe(&[&["sql", "--endpoint-url", &server][..], arguments].concat());
        command.env_remove("AWS_ACCESS_KEY_ID").current_dir(self.directory.path());
        command
    }

    fn output(&self, arguments: &[&str], input: &str) -> Output {
        let mut command = self.command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    }

    /// Expects success and returns the output.
    #[track_caller]
    fn run_with(&self, arguments: &[&str], input: &str) -> String {
        let output = self.output(arguments, input);
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{errors}");
        String::from_utf8(output.stdout).unwrap()
    }

    #[track_caller]
    fn run(&self, arguments: &[&str]) -> String {
        self.run_with(arguments, "")
    }
}

const BY_KEY: &str = "SELECT * FROM Music WHERE Artist = 'Acme'";

#[test]
fn statements_come_from_the_command_line_files_and_standard_input() {
    let music = Music::start();
    let expected = concat!(
        " Artist | Song     | Note | Tags         | Year\n",
        "--------+----------+------+--------------+------\n",
        " Acme   | One; two |      | <<'a', 'b'>> | 2001\n",
        " Acme   | Three    | NULL |              | 2002\n",
        "(2 rows, 0.5 units)\n",
    );
    assert_eq!(music.run(&["-c", BY_KEY]), expected);
    assert_eq!(music.run_with(&[], &format!("{BY_KEY}\n")), expected);
    assert_eq!(music.run_with(&["-f", "-"], &format!("{BY_KEY};\n\\q\nnonsense;")), expected);
    fs::write(music.directory.path().join("a.sql"), format!("-- keys\n{BY_KEY}")).unwrap();
    assert_eq!(music.run(&["-f", "a.sql"]), expected);
    assert_eq!(music.run(&["-c", "\\i a.sql"]), expected);
    assert_eq!(
        music.run(&["-q", "-x", "-c", "SELECT Song FROM Music WHERE Artist = 'Bolt'"]),
        concat!("-[ 1 ]----------------------------------\n", "Song | It's \"four\"\n",)
    );
}

#[test]
fn rows_are_csv_or_json_and_the_rest_goes_to_standard_error() {
    let music = Music::start();
    let output = music.output(
        &["--format", "csv", "-c", "SELECT * FROM Music WHERE Artist IN ['Acme', 'Bolt']"],
        "",
    );
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        concat!(
            "Artist,Song,Note,Plays,Tags,Year\r\n",
            "Acme,One; two,,,\"[\"\"a\"\",\"\"b\"\"]\",2001\r\n",
            "Acme,Three,NULL,,,2002\r\n",
            "Bolt,\"It's \"\"four\"\"\",,12345678901234567890.5,,\r\n",
        ),
    );
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "(3 rows, 1 unit)\n");
    assert_eq!(
        music.run(&["--format", "json", "-c", BY_KEY]),
        concat!(
            "{\"Artist\":\"Acme\",\"Song\":\"One; two\",\"Tags\":[\"a\",\"b\"],\"Year\":2001}\n",
            "{\"Artist\":\"Acme\",\"Note\":null,\"Song\":\"Three\",\"Year\":2002}\n",
        ),
    );
    let song = "SELECT Song, Plays FROM Music WHERE Artist = 'Bolt'";
    assert_eq!(
        music.run(&["--format", "json", "-c", song]),
        "{\"Plays\":12345678901234567890.5,\"Song\":\"It's \\\"four\\\"\"}\n",
    );
    assert_eq!(
        music.run(&["-c", &format!("\\format dynamodb-json\n{song}")]),
        "{\"Plays\":{\"N\":\"12345678901234567890.5\"},\"Song\":{\"S\":\"It's \\\"four\\\"\"}}\n",
    );
    music.run(&["-c", &format!("\\o out.csv\n\\format csv\n{song}")]);
    let written = fs::read_to_string(music.directory.path().join("out.csv")).unwrap();
    assert_eq!(written, "Song,Plays\r\n\"It's \"\"four\"\"\",12345678901234567890.5\r\n");
}

#[test]
fn scans_get_a_warning_and_long_results_are_bounded() {
    let music = Music::start();
    let errors =
        |arguments: &[&str]| String::from_utf8(music.output(arguments, "").stderr).unwrap();
    let warning = errors(&["-c", "SELECT * FROM Music"]);
    assert!(
        warning.starts_with("zenobe: warning: this statement scans table Music: 3 items, "),
        "{warning}"
    );
    assert!(warning.ends_with(" about 2 read units to the end\n"), "{warning}");
    let index = errors(&["-c", "SELECT * FROM Music.\"by-year\" WHERE Artist = 'Acme'"]);
    assert!(index.contains("scans index by-year of table Music: 2 items"), "{index}");
    for quiet in [
        &["-q", "-c", "SELECT * FROM Music"][..],
        &["-c", BY_KEY],
        &["-c", "SELECT * FROM Music.\"by-year\" WHERE \"Year\" = 2001"],
        &["-c", "UPDATE Music SET Plays = 1 WHERE Artist = 'Acme' AND Song = 'Three'"],
    ] {
        assert_eq!(errors(quiet), "", "{quiet:?}");
    }
    let output = music.output(&["--max-rows", "2", "-c", "SELECT Song FROM Music"], "");
    assert_eq!(String::from_utf8(output.stdout).unwrap().lines().count(), 5);
    assert!(
        String::from_utf8(output.stderr)
            .unwrap()
            .contains("there may be more rows; --max-rows 0 prints all")
    );
    assert_eq!(
        music
            .run(&["-q", "--max-rows", "0", "--format", "json", "-c", "SELECT Song FROM Music"])
            .lines()
            .count(),
        3
    );
}

#[test]
fn tables_are_described() {
    let music = Music::start();
    let table = music.run(&["-c", "\\d Music"]);
    for part in [
        "table Music\n",
        "  partition key       Artist (S)\n",
        "  sort key            Song (S)\n",
        "  items               3\n",
        "  billing             on demand\n",
        "  time to live        off\n",
        "  stream              off\n",
        " by-year | global | Year (N)      |          | all        |     2 |",
    ] {
        assert!(table.contains(part), "{part:?} in\n{table}");
    }
    let tables = music.run(&["-c", "\\d"]);
    assert!(tables.contains(" Music | ACTIVE | Artist (S)    | Song (S) |     3 |"), "{tables}");
}

#[test]
fn failures_end_the_script_with_a_message_and_a_code() {
    let music = Music::start();
    let script = "SELECT Song FROM Music WHERE Artist = 'Bolt';\n\nSELECT * FROM;\nSELECT 1;";
    let output = music.output(&["-q"], script);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stdout).unwrap().contains("four"));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(
        text.starts_with("zenobe: line 3: ValidationException: Statement wasn't well formed"),
        "{text}"
    );
    assert_eq!(text.lines().count(), 1, "{text}");

    let output = music.output(&["-q", "--keep-going"], script);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(text.lines().count(), 3, "{text}");
    assert!(text.ends_with("zenobe: 2 of the statements failed\n"), "{text}");

    for (arguments, code, expected) in [
        (
            &["-c", "SELECT * FROM Nowhere"][..],
            1,
            "zenobe: ResourceNotFoundException: Requested resource not found",
        ),
        (
            &["-c", "SELECT * FROM Music WHERE Artist = ?"],
            1,
            "the shell takes no parameters; replace each ? (1 in this statement)",
        ),
        (&["-c", "SELECT 'a"], 1, "the text ends inside a string"),
        (&["-c", "\\nonsense"], 1, "there is no command \\nonsense"),
        (&["-c", "\\d Nowhere"], 1, "Table: Nowhere not found"),
        (&["-f", "missing.sql"], 1, "cannot read missing.sql"),
        (&["-c", "\\o no/such/file"], 1, "cannot write to no/such/file"),
    ] {
        check_refusal(&mut music.command(arguments), code, expected);
    }
    fs::write(music.directory.path().join("loop.sql"), "\\i loop.sql").unwrap();
    let mut looping = music.command(&["-f", "loop.sql"]);
    check_refusal(&mut looping, 1, "nested more than 16 deep");
    let mut nowhere =
        zenobe(&["sql", "--endpoint", "http://127.0.0.1:1", "-c", "SELECT * FROM Music"]);
    check_refusal(&mut nowhere, 1, "cannot connect to http://127.0.0.1:1");
    let output = music.output(&["--format", "xml"], "");
    assert_eq!(output.status.code(), Some(2));
}
