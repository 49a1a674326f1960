//! The control hosts: where a client chooses what it sees, and asks what was missing.
//!
//! Owns the commands of NetarchiveSuite's viewerproxy and the pages around them. A change comes from a form of these
//! pages, or from a program; a browser that comes by an address gets a form to say yes to; an archived page is refused,
//! whatever it sends.

mod caller;
pub(crate) mod command;

use std::collections::BTreeSet;
use std::time::Instant;

use axum::body::Body;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE, LOCATION};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use viewer_replay::response::ReplyMethod;

use crate::archive::{NoAnswer, ProxiedArchive, StoredRequest};
use crate::clients::{ClientKey, ClientReport, ClientView, JobChoice};
use crate::missing::{seed_lines, url_lines};
use crate::page::{Block, Form, FormInput, ProxyPage, plain_page};
use crate::requested::SiteUrl;
use crate::server::ProxyServer;
use caller::{Caller, identify_caller};
use command::{Change, Command, CommandParameters, InvalidCommand, Question};

/// The longest form that is read, in bytes.
const LONGEST_FORM: usize = 64 * 1024;

/// The words about browsers and what a proxy cannot keep from them.
const BROWSER_WORDS: &str = "Use a browser profile of its own for the archive: it will believe this certificate at all sites. \
                             Archived scripts run in it; a browser may let them send packets past any proxy (WebRTC) and reach \
                             addresses of your own machine. Chromium keeps both in with \
                             --webrtc-ip-handling-policy=disable_non_proxied_udp --proxy-bypass-list=<-loopback> (older ones \
                             call the first --force-webrtc-ip-handling-policy, and each passes over the other name in silence); \
                             Firefox with media.peerconnection.enabled=false and network.proxy.allow_hijacking_localhost=true.";

impl<A: ProxiedArchive> ProxyServer<A> {
    /// Answers a request to a control host.
    pub(crate) async fn answer_control(
        &self,
        key: &ClientKey,
        site: &SiteUrl,
        head: &Parts,
        body: Body,
    ) -> Response<Body> {
        let answered = self.obey(key, site, head, body).await;
        answered.unwrap_or_else(|page| page.to_response(&head.headers))
    }

    async fn obey(
        &self,
        key: &ClientKey,
        site: &SiteUrl,
        head: &Parts,
        body: Body,
    ) -> Result<Response<Body>, Box<ProxyPage>> {
        let caller = identify_caller(&site.origin, &head.headers);
        if caller == Caller::Foreign {
            return Err(Box::new(foreign()));
        }
        if ![Method::GET, Method::HEAD, Method::POST].contains(&head.method) {
            let page = ProxyPage::control_page(StatusCode::METHOD_NOT_ALLOWED, "Not allowed");
            return Err(Box::new(
                page.with_words("Only GET, HEAD and POST can be used here."),
            ));
        }
        let form = self.form(head, body).await?;
        let (path, query) = site.path.split_once('?').unwrap_or((&site.path, ""));
        let parameters = CommandParameters::read_parameters(query, &form)
            .map_err(|error| Box::new(invalid(&error)))?;
        let command =
            Command::read_command(path, &parameters).map_err(|error| Box::new(invalid(&error)))?;
        let now = self.now();
        match command {
            Command::Ask(question) => {
                let client = AskingClient { key, now };
                Ok(self.answer_question(client, &question, site, head).await)
            }
            Command::Change(change) => {
                let is_proven = match caller {
                    Caller::OwnPage => head.method == Method::POST,
                    Caller::Program => head.method != Method::HEAD,
                    Caller::UnknownPage | Caller::Foreign => false,
                };
                if !is_proven {
                    return Err(Box::new(confirmation(path, &parameters, &change)));
                }
                self.change(key, now, change).await?;
                Ok(self.after(key, now, &parameters, &head.headers))
            }
        }
    }

    /// Returns the body of a form.
    async fn form(&self, head: &Parts, body: Body) -> Result<Vec<u8>, Box<ProxyPage>> {
        if head.method != Method::POST {
            return Ok(Vec::new());
        }
        let page = |status, words: String| {
            Box::new(ProxyPage::control_page(status, "This form cannot be read").with_words(words))
        };
        let essence = head.headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
        let essence = essence.and_then(|value| value.split(|byte| *byte == b';').next());
        let is_form = essence.is_none_or(|essence| {
            essence
                .trim_ascii()
                .eq_ignore_ascii_case(b"application/x-www-form-urlencoded")
        });
        if !is_form {
            let words = "The body of a POST has to be application/x-www-form-urlencoded.";
            return Err(page(StatusCode::UNSUPPORTED_MEDIA_TYPE, words.to_owned()));
        }
        let read = self.read_body(body, LONGEST_FORM).await;
        read.map(|form| form.to_vec())
            .map_err(|error| page(error.status(), format!("Not possible: {error}.")))
    }

    async fn answer_question(
        &self,
        client: AskingClient<'_>,
        question: &Question,
        site: &SiteUrl,
        head: &Parts,
    ) -> Response<Body> {
        let AskingClient { key, now } = client;
        let report = self.clients().client_report(key, now);
        match question {
            Question::Home => self.home(&report).to_response(&head.headers),
            Question::Status => text(self.status(&report)),
            Question::Recorded => text(url_lines(&self.clients().missing_urls(key, now))),
            Question::Seeds => {
                let list = seed_lines(
                    &self.clients().missing_urls(key, now),
                    &self.label(&report.view),
                );
                as_download(text(list), "attachment; filename=\"missing-seeds.txt\"")
            }
            Question::Certificate => {
                let pem = self.authority().certificate().to_owned();
                let response = plain_page(StatusCode::OK, "application/x-x509-ca-cert", pem);
                as_download(response, "attachment; filename=\"holdfast-proxy-ca.pem\"")
            }
            Question::Stored => {
                let collection = self.collection(&report.view);
                let request = StoredRequest {
                    client: key.address,
                    collection: collection.as_deref(),
                    path_and_query: &site.path,
                    method: match head.method {
                        Method::HEAD => ReplyMethod::Head,
                        _ => ReplyMethod::Get,
                    },
                    headers: &head.headers,
                };
                self.archive().serve_stored(request).await
            }
        }
    }

    async fn change(
        &self,
        key: &ClientKey,
        now: Instant,
        change: Change,
    ) -> Result<(), Box<ProxyPage>> {
        let clients = self.clients();
        match change {
            Change::Start => clients.set_recording(key, now, true),
            Change::Stop => clients.set_recording(key, now, false),
            Change::Clear => clients.clear_client(key, now),
            Change::Index { jobs, label } => {
                let view = clients.client_view(key, now);
                let jobs = self.choose(&view, jobs, label).await?;
                // Another choice that was made meanwhile stays.
                let view = ClientView {
                    jobs,
                    ..ClientView::clone(&clients.client_view(key, now))
                };
                clients.set_view(key, now, view);
            }
            Change::ClientView { collection, date } => {
                let known = self.archive().collections();
                if let Some(name) = collection.as_ref().filter(|name| !known.contains(name)) {
                    let page = ProxyPage::control_page(StatusCode::NOT_FOUND, "No such collection");
                    let words = format!("There is no `{name}`; there are: {}.", known.join(", "));
                    return Err(Box::new(page.with_words(words)));
                }
                let view = ClientView {
                    collection,
                    date,
                    ..ClientView::clone(&clients.client_view(key, now))
                };
                clients.set_view(key, now, view);
            }
        }
        Ok(())
    }

    /// Chooses jobs, and finds out which of them have data.
    async fn choose(
        &self,
        view: &ClientView,
        jobs: BTreeSet<u64>,
        label: String,
    ) -> Result<Option<JobChoice>, Box<ProxyPage>> {
        if jobs.is_empty() {
            return Ok(None);
        }
        let collection = self.collection(view);
        let found = self.archive().jobs_with_data(collection.as_deref(), &jobs);
        let found = found.await.map_err(|error| Box::new(unavailable(&error)))?;
        Ok(Some(JobChoice {
            without_data: jobs.difference(&found).copied().collect(),
            jobs,
            label,
        }))
    }

    /// Returns the answer to a change: on to the page that was named, or the state in words.
    fn after(
        &self,
        key: &ClientKey,
        now: Instant,
        parameters: &CommandParameters,
        headers: &HeaderMap,
    ) -> Response<Body> {
        let Some(path) = parameters.return_path() else {
            let report = self.clients().client_report(key, now);
            return self.home(&report).to_response(headers);
        };
        let mut response = plain_page(StatusCode::SEE_OTHER, "text/plain; charset=utf-8", "");
        response
            .headers_mut()
            .insert(LOCATION, HeaderValue::from_static(path));
        response
    }

    /// Returns the collection, the date and the jobs of a view, in words.
    fn label(&self, view: &ClientView) -> String {
        let collection = self.collection(view);
        let collection = collection.as_deref().unwrap_or("no collection");
        let date = view.date.map(|date| date.to_string());
        let date = date.as_deref().unwrap_or("latest captures");
        match &view.jobs {
            None => format!("collection {collection}, {date}"),
            Some(choice) => {
                let jobs: Vec<String> = choice.jobs.iter().map(u64::to_string).collect();
                let label = &choice.label;
                let jobs = jobs.join(" ");
                format!("collection {collection}, {date}, jobs {jobs} {label}")
            }
        }
    }

    /// Returns the state of a client, in words.
    fn status(&self, report: &ClientReport) -> String {
        let recording = if report.is_recording {
            "Missing URLs are being recorded"
        } else {
            "Missing URLs are not being recorded"
        };
        let mut text = format!("{recording}; {} are in the list.\n", report.missing);
        if report.omitted > 0 {
            let words = format!(
                "The list was full {} times, and what was missing then is not in it.\n",
                report.omitted
            );
            text.push_str(&words);
        }
        text.push_str("You see: ");
        text.push_str(self.label(&report.view).trim_end());
        text.push_str(".\n");
        if let Some(choice) = &report.view.jobs
            && !choice.without_data.is_empty()
        {
            let jobs: Vec<String> = choice.without_data.iter().map(u64::to_string).collect();
            let words = format!(
                "The archive has no files of these jobs: {}.\n",
                jobs.join(" ")
            );
            text.push_str(&words);
        }
        text
    }

    fn home(&self, report: &ClientReport) -> ProxyPage {
        let mut page = ProxyPage::control_page(StatusCode::OK, "The archive as a proxy");
        for line in self.status(report).lines() {
            page = page.with_words(line);
        }
        let view = &report.view;
        let jobs = view.jobs.as_ref();
        let numbers = jobs.map(|choice| {
            let numbers: Vec<String> = choice.jobs.iter().map(u64::to_string).collect();
            numbers.join(" ")
        });
        let recording = if report.is_recording {
            form("/stopRecordingURIs", "Stop recording missing URLs", vec![])
        } else {
            form("/startRecordingURIs", "Record missing URLs", vec![])
        };
        let mut choice = vec![FormInput::Text {
            name: "date",
            label: "Captures nearest to this date, such as 2020 or 2020-01-31 (empty: the latest)",
            value: view.date.map(|date| date.to_string()).unwrap_or_default(),
        }];
        choice.insert(
            0,
            FormInput::Choice {
                name: "collection",
                label: "Collection",
                options: self.archive().collections(),
                chosen: self.collection(view).unwrap_or_default(),
            },
        );
        let index = vec![
            FormInput::Text {
                name: "jobID",
                label: "Numbers of harvest jobs (empty: all)",
                value: numbers.unwrap_or_default(),
            },
            FormInput::Text {
                name: "label",
                label: "Name of this choice",
                value: jobs.map(|jobs| jobs.label.clone()).unwrap_or_default(),
            },
        ];
        page.with_block(Block::Heading("What you see"))
            .with_block(form("/changeView", "Look at this", choice))
            .with_block(form("/changeIndex", "Look at these jobs", index))
            .with_block(Block::Heading("What is missing"))
            .with_block(recording)
            .with_block(link("/getRecordedURIs", "The list of missing URLs"))
            .with_block(link("/seeds.txt", "The same as a list of seeds"))
            .with_block(form("/clearRecordedURIs", "Clear the list", vec![]))
            .with_block(Block::Heading("Sites over https"))
            .with_words(
                "Browsers and tools have to believe the authority of this proxy. Save its certificate, compare its fingerprint \
                 (SHA-256) with what the people who run the archive say, and install it: in Firefox under Settings, Certificates, \
                 Authorities, Import; in Chromium under Settings, Privacy and security, Security, Manage certificates; for curl \
                 with --cacert.",
            )
            .with_block(Block::Quote(self.authority().fingerprint().to_owned()))
            .with_block(link("/ca.pem", "The certificate of the authority"))
            .with_words(BROWSER_WORDS)
    }
}

/// A client, at the time of its question.
#[derive(Clone, Copy)]
struct AskingClient<'a> {
    key: &'a ClientKey,
    now: Instant,
}

fn form(action: &str, button: &'static str, mut inputs: Vec<FormInput>) -> Block {
    inputs.push(FormInput::Hidden {
        name: "returnURL".to_owned(),
        value: "/".to_owned(),
    });
    Block::Form(Form {
        action: action.to_owned(),
        inputs,
        button,
    })
}

const fn link(to: &'static str, words: &'static str) -> Block {
    Block::Link { to, words }
}

fn text(text: String) -> Response<Body> {
    plain_page(StatusCode::OK, "text/plain; charset=utf-8", text)
}

fn as_download(mut response: Response<Body>, disposition: &'static str) -> Response<Body> {
    let disposition = HeaderValue::from_static(disposition);
    response
        .headers_mut()
        .insert(CONTENT_DISPOSITION, disposition);
    response
}

/// Returns a page that asks a person whether a change is meant, with the change as a form.
fn confirmation(path: &str, parameters: &CommandParameters, change: &Change) -> ProxyPage {
    let inputs = parameters.iter().map(|(name, value)| FormInput::Hidden {
        name: name.to_owned(),
        value: value.to_owned(),
    });
    ProxyPage::control_page(StatusCode::OK, change.words())
        .with_words("A browser came here by an address, and any page could have sent it. If you want this, say so.")
        .with_block(Block::Form(Form {
            action: path.to_owned(),
            inputs: inputs.collect(),
            button: "Yes",
        }))
        .with_block(link("/", "No, show the state"))
}

fn foreign() -> ProxyPage {
    ProxyPage::control_page(StatusCode::FORBIDDEN, "Refused")
        .with_words("Pages of the archive cannot call the commands of the proxy. Type the address of this page yourself.")
}

fn invalid(error: &InvalidCommand) -> ProxyPage {
    let status = match error {
        InvalidCommand::Unknown(_) => StatusCode::NOT_FOUND,
        _ => StatusCode::BAD_REQUEST,
    };
    let page = ProxyPage::control_page(status, "This command cannot be understood");
    page.with_words(error.to_string())
        .with_block(link("/", "All commands"))
}

fn unavailable(error: &NoAnswer) -> ProxyPage {
    match error {
        NoAnswer::Collection(words) => {
            ProxyPage::control_page(StatusCode::NOT_FOUND, "No such collection").with_words(words)
        }
        NoAnswer::Unavailable(words) => {
            let page =
                ProxyPage::control_page(StatusCode::SERVICE_UNAVAILABLE, "Not available now");
            page.with_words(words)
                .with_words("Nothing was changed.")
                .again_after(5)
        }
    }
}
