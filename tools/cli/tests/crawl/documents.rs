//! The documents of a job, judged by a reader that knows the formats of the field and nothing of this program.

use std::path::Path;

use serde_json::Value;

use crate::support::job::{JobFolder, crawl, executable, run};
use crate::support::nginx::Nginx;
use crate::support::tools::Tools;

/// Redirects, pages that are not there or not to be fetched, pictures, and a place for users with a password.
const SERVER: &str = "server { listen 127.0.0.1:{port}; listen 127.0.0.2:{port}; root {root};
    location = /moved { return 302 /page3.html; }
    location = /empty { return 204; }
    location /users/ { auth_basic users; auth_basic_user_file {root}/passwords; } }";

/// Writes the site.
fn write_site(root: &Path) {
    let write = |name: &str, text: &str| std::fs::write(root.join(name), text).unwrap();
    std::fs::create_dir(root.join("users")).unwrap();
    let links = "<a href=/page1.html>1</a> <a href=/missing>2</a> <a href=/private/x>3</a> <a href=/users/in.html>4</a>
        <img src=/picture.svg> <a href='/sp%20ace.html?a=1&amp;b=\u{e6}'>5</a> <a href=/empty>6</a> <a href=/moved>7</a>";
    write("index.html", links);
    for page in 1..8 {
        write(
            &format!("page{page}.html"),
            &format!("<a href=/page{}.html>{page}</a>", page + 1),
        );
    }
    write("picture.svg", "<svg xmlns='http://www.w3.org/2000/svg'/>");
    write("sp ace.html", "blank");
    write("users/in.html", "for users");
    write("passwords", "anna:{PLAIN}secret\n");
    write("robots.txt", "User-agent: *\nDisallow: /private/\n");
}

/// Fails if a log, a report or the metadata file of a job cannot be read by the formats of the field, lacks something,
/// or contradicts what the archive files have.
#[test]
fn documents_are_read_by_the_standards_alone() {
    let Some(tools) = Tools::find() else { return };
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("root");
    std::fs::create_dir(&root).unwrap();
    write_site(&root);
    let http = SERVER.replace("{root}", root.to_str().unwrap());
    let site = Nginx::start(&tools.nginx, &http);
    let moved = format!("{}moved", site.base());
    let other = format!("http://127.0.0.2:{}/page1.html", site.port);
    let unknown = format!("http://127.0.0.1:{}/page9.html", site.port);
    let judge = |name: &str, order: &str, words: &[&str], flags: &[&str]| -> (JobFolder, Value) {
        let file = directory.path().join(format!("{name}.toml"));
        std::fs::write(&file, order).unwrap();
        let base = site.base();
        let all = [
            &base,
            &moved,
            &other,
            &unknown,
            "--delay",
            "0",
            "--job",
            "12",
            "--harvest",
            "34",
        ];
        let more = [
            "--organization",
            "example.dk",
            "--order",
            file.to_str().unwrap(),
        ];
        let all = [&all[..], &more[..], words].concat();
        let (job, report) = crawl(&directory.path().join(name), &all);
        let said = directory.path().join(format!("{name}.json"));
        std::fs::write(&said, report.to_string()).unwrap();
        let words = [job.path().to_str().unwrap(), said.to_str().unwrap()];
        let judged = tools.judge("documents.py", &[&words[..], flags].concat(), &[]);
        (job, judged)
    };
    let credential = "[[credential]]\nhost = '127.0.0.1'\nuser = 'anna'\npassword = 'secret'\n";
    let (first, judged) = judge("first", credential, &[], &[]);
    assert_eq!(
        judged["statuses"],
        serde_json::json!([-9998, 200, 204, 302, 401, 404])
    );

    // Quotas end one host, and the other one is read by the index of the first job.
    let index = directory.path().join("index");
    let mut command = executable();
    command.args(["index", "dedup"]).arg(first.metadata());
    run(command.arg("-o").arg(&index)).expect(0);
    let words = ["--dedup", index.to_str().unwrap(), "--dedup-all"];
    let order = "[queues]\nmax_objects = 6\n";
    let (_, judged) = judge("second", order, &words, &["dedup=12"]);
    let statuses = judged["statuses"].as_array().unwrap();
    assert!(statuses.contains(&(-5003).into()), "{judged}");
}
