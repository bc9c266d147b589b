use std::fs;
use std::path::{Path, PathBuf};

use zenobe_testing::{Postgres, Process, ServerProcess, TemporaryDirectory, wait_until};

use super::{restore, serve, serve_command};
use crate::commands::zenobe;
use crate::moving::{content, refuse, succeed, text};

fn back_up(server: &ServerProcess, to: &Path) -> String {
    succeed(&mut zenobe(&["backup", "--endpoint", &server.endpoint(), "--to", text(to)]))
}

fn verify(from: &Path) -> std::process::Command {
    zenobe(&["backup", "verify", "--from", text(from), "--scratch", text(from.parent().unwrap())])
}

/// The files below a directory whose paths contain a text.
fn files(directory: &Path, part: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![directory.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_str().unwrap().contains(part) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Everything that a client can see is in a backup, and a further one stores only what is new.
#[test]
fn a_running_server_is_backed_up_and_restored() {
    let directory = TemporaryDirectory::new("backups");
    let [data, backups, restored] =
        ["data", "backups", "restored"].map(|name| directory.path().join(name));
    let server = serve(&data, &[]);
    let mut client = server.client();
    content::fill(&mut client);
    let before = content::see(&mut client);
    let said = back_up(&server, &backups);
    assert!(said.contains(" known with 0 B"), "{said}");
    let first = said.split(' ').nth(1).unwrap().to_owned();
    assert!(files(&data, "CHECKPOINTS/").is_empty(), "the copy is removed");

    content::put(&mut client, 999);
    let iterators = content::iterators(&mut client, "LATEST");
    let after = content::see(&mut client);
    let said = back_up(&server, &backups);
    assert!(!said.contains(" known with 0 B"), "{said}");
    server.kill();
    let said = succeed(&mut verify(&backups));
    assert!(said.contains("ranges agree with those of the original"), "{said}");

    succeed(&mut restore(&backups, &restored, &[]));
    let server = serve(&restored, &[]);
    let mut client = server.client();
    assert_eq!(content::see(&mut client), after);
    content::check_it_goes_on(&mut client, iterators);
    server.stop();

    let earlier = directory.path().join("earlier");
    succeed(&mut restore(&backups, &earlier, &["--backup", &first]));
    assert_eq!(content::see(&mut serve(&earlier, &[]).client()), before);

    let listed = succeed(&mut zenobe(&["backup", "list", "--from", text(&backups)]));
    assert_eq!(listed.lines().count(), 2, "{listed}");
    let said = succeed(&mut zenobe(&["backup", "prune", "--from", text(&backups), "--keep", "1"]));
    assert!(said.starts_with("removed 1 backups") && !said.contains("is being made"), "{said}");
    succeed(&mut verify(&backups));
    refuse(
        &mut restore(&backups, &directory.path().join("gone"), &["--backup", &first]),
        &["there is no backup", &first],
    );
}

/// The server makes the backup, whatever becomes of the command that asked for it.
#[test]
fn a_backup_outlives_the_command_that_asked_for_it() {
    let directory = TemporaryDirectory::new("abandoned-backup");
    let [data, backups, restored] =
        ["data", "backups", "restored"].map(|name| directory.path().join(name));
    let server = serve(&data, &[]);
    content::fill(&mut server.client());
    let seen = content::see(&mut server.client());
    let mut command = zenobe(&["backup", "--endpoint", &server.endpoint(), "--to", text(&backups)]);
    let mut asking = Process::start(&mut command).unwrap();
    wait_until(|| backups.exists());
    asking.kill();
    let mut list = zenobe(&["backup", "list", "--from", text(&backups)]);
    wait_until(|| String::from_utf8_lossy(&list.output().unwrap().stdout).contains(" files, "));
    let said = succeed(&mut verify(&backups));
    assert!(said.contains("ranges agree with those of the original"), "{said}");
    server.kill();
    succeed(&mut restore(&backups, &restored, &[]));
    assert_eq!(content::see(&mut serve(&restored, &[]).client()), seen);
}

/// What is damaged is named, nothing half restored is served, and the same command finishes it.
#[test]
fn a_damaged_backup_is_refused() {
    let directory = TemporaryDirectory::new("damaged-backup");
    let [data, backups, restored] =
        ["data", "backups", "restored"].map(|name| directory.path().join(name));
    let server = serve(&data, &[]);
    content::fill(&mut server.client());
    back_up(&server, &backups);
    let seen = content::see(&mut server.client());
    refuse(&mut restore(&backups, &data, &[]), &["is not empty"]);
    server.kill();

    let table = files(&backups, ".sst").pop().unwrap();
    let whole = fs::read(&table).unwrap();
    let mut altered = whole.clone();
    altered[whole.len() / 2] ^= 0x40;
    fs::write(&table, &altered).unwrap();
    let name = table.file_name().unwrap().to_str().unwrap();
    refuse(&mut verify(&backups), &["the backup is damaged", name, "SHA-256"]);
    refuse(&mut restore(&backups, &restored, &[]), &["the backup is damaged", name, "SHA-256"]);
    match ServerProcess::try_launch(&mut serve_command(&restored, &[])) {
        Err(error) => assert!(error.to_string().contains("unfinished restore"), "{error}"),
        Ok(_) => panic!("it serves half a database"),
    }
    fs::write(&table, &whole[..whole.len() - 1]).unwrap();
    refuse(&mut restore(&backups, &restored, &[]), &["the backup is damaged", name]);
    fs::write(&table, &whole).unwrap();
    succeed(&mut restore(&backups, &restored, &[]));
    assert_eq!(content::see(&mut serve(&restored, &[]).client()), seen);

    let manifest = files(&backups, "manifest").pop().unwrap();
    let text_of = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, text_of.replacen("\"size\": ", "\"size\": 1", 1)).unwrap();
    refuse(&mut verify(&backups), &["the backup is damaged", "manifest"]);
    fs::remove_file(&manifest).unwrap();
    refuse(&mut verify(&backups), &["there is no backup at"]);
}

#[test]
fn a_database_without_files_is_refused() {
    let directory = TemporaryDirectory::new("no-files");
    let to = text(directory.path());
    let server = ServerProcess::in_memory(&[]);
    refuse(&mut zenobe(&["backup", "--endpoint", &server.endpoint(), "--to", to]), &["in memory"]);
    refuse(
        &mut zenobe(&["backup", "--endpoint", &server.endpoint(), "--to", "gs://b/p"]),
        &["--to", "scheme"],
    );
    let store = &Postgres::shared().database();
    let server =
        ServerProcess::launch(&mut zenobe(&["serve", "--listen", "127.0.0.1:0", "--store", store]));
    refuse(
        &mut zenobe(&["backup", "--endpoint", &server.endpoint(), "--to", to]),
        &["PostgreSQL", "pg_basebackup"],
    );
    refuse(
        &mut zenobe(&["serve", "--store", store, "--ship-to", to]),
        &["--ship-to", "pg_basebackup"],
    );
}
