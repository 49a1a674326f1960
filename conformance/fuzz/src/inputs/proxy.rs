//! Requests to the proxy of the viewer, byte by byte, and those in the tunnels that it plays the end of.

use viewer_proxy::reading::{
    Change, Command, CommandParameters, HostAndPort, InvalidProxyRequest, ProxyRequest,
    RequestChannel, RequestHead, Scheme, SiteUrl, Tunnel, build_head, read_request, user_of,
};

/// The longest URL that is taken, in bytes. HTTP has room for one that is longer.
const LONGEST_URL: usize = 48 * 1024;

/// Requests of each kind, and what follows them on their connection.
pub(super) fn proxy_request_seeds() -> Vec<Vec<u8>> {
    [
        "GET http://A.dk:8080?y=%C3%A6 HTTP/1.1\r\nHost: b.dk\r\nAccept-Datetime: Wed, 01 Jan 2020 00:00:00 GMT\r\n\r\n",
        "CONNECT [2001:db8::1]:443 HTTP/1.1\r\nProxy-Authorization: Basic YW5uYTpwdw==\r\n\r\n\
         GET /p?q HTTP/1.1\r\nHost: [2001:db8::1]\r\n\r\n",
        "CONNECT a.dk:8443 HTTP/1.1\r\n\r\nGET https://A.dk:8443/;x HTTP/1.1\r\nHost: a.dk:8443\r\n\r\n",
        "POST http://viewerproxy.invalid/changeIndex?jobID=17,18&label=x HTTP/1.1\r\n\r\njobID=19&returnURL=/getStatus",
        "GET http://netarchivesuite.viewerproxy.invalid/changeView?date=2020-01-31T12:00&collection=all HTTP/1.1\r\n\r\n",
        "OPTIONS http://a.dk/ HTTP/1.1\r\nOrigin: http://b.dk\r\nAccess-Control-Request-Method: PUT\r\n\r\n",
        "POST ftp://a.dk/x HTTP/1.1\r\nUpgrade: h2c, websocket\r\nService-Worker: script\r\n\r\na=b",
    ]
    .map(|text| text.as_bytes().to_vec())
    .into()
}

/// A refusal is one of the client's faults; a URL that is taken reads as itself once more and is looked up as it is; a
/// tunnel has a host and a port, and its requests stay at that host.
pub(super) fn proxy_request(input: &[u8]) {
    let (head, behind) = split_head(input);
    let Some(head) = parse_head(head) else {
        return;
    };
    if let Some(user) = user_of(&head.headers) {
        assert!(!user.is_empty() && !user.contains(char::is_control));
    }
    let Some(to) = check(&RequestChannel::Open, &head, behind) else {
        return;
    };
    let (head, behind) = split_head(behind);
    let Some(head) = parse_head(head) else {
        return;
    };
    for scheme in [Scheme::Http, Scheme::Https] {
        let channel = RequestChannel::Tunnel(Tunnel {
            scheme,
            to: to.clone(),
            user: None,
        });
        assert_eq!(check(&channel, &head, behind), None, "a tunnel in a tunnel");
    }
}

/// Returns a head, and what follows its empty line.
fn split_head(bytes: &[u8]) -> (&[u8], &[u8]) {
    let end = bytes.windows(4).position(|at| at == b"\r\n\r\n");
    end.map_or((bytes, &[][..]), |end| (&bytes[..end], &bytes[end + 4..]))
}

/// Returns the head that HTTP reads in some lines, if it reads one.
fn parse_head(bytes: &[u8]) -> Option<RequestHead> {
    let mut lines = bytes.split(|byte| *byte == b'\n');
    let mut first = lines.next()?.split(|byte| *byte == b' ');
    let method = first.next()?;
    let target = first.next()?;
    let mut fields = Vec::new();
    for line in lines {
        let colon = line.iter().position(|byte| *byte == b':')?;
        fields.push((&line[..colon], line[colon + 1..].trim_ascii()));
    }
    build_head(method, target, fields)
}

/// Reads a request, checks what came of it, and returns where a tunnel shall lead.
fn check(channel: &RequestChannel, head: &RequestHead, behind: &[u8]) -> Option<HostAndPort> {
    match read_request(channel, head, LONGEST_URL) {
        Ok(ProxyRequest::OpenTunnel(to)) => {
            check_tunnel(&to);
            return Some(to);
        }
        Ok(ProxyRequest::Itself) => assert_eq!(*channel, RequestChannel::Open),
        Ok(ProxyRequest::Preflight) => assert_eq!(head.method.as_str(), "OPTIONS"),
        Ok(ProxyRequest::Control(site)) => {
            assert!(site.is_control());
            check_site(channel, &site);
            check_command(&site, behind);
        }
        Ok(ProxyRequest::Capture(question)) => {
            assert!(!question.site.is_control());
            assert_eq!(question.target.url(), question.site.url);
            let is_read = ["GET", "HEAD"].contains(&head.method.as_str());
            assert_eq!(question.is_read, is_read);
            check_site(channel, &question.site);
        }
        Err(error) => {
            let status = error.status().as_u16();
            assert!((400..500).contains(&status) || status == 501, "{error}");
            assert!(!error.to_string().contains(char::is_control), "{error:?}");
        }
    }
    None
}

/// A tunnel that was read from a target is read from the name of its end.
fn check_tunnel(to: &HostAndPort) {
    assert!(to.port != 0 && !to.certificate_name().is_empty());
    let named = format!("{}:{}", to.host, to.port);
    let found = read_again("CONNECT", &named);
    assert_eq!(found, Ok(ProxyRequest::OpenTunnel(to.clone())));
}

/// Asserts that a URL is that of its own parts, at the host of its tunnel, and is read from itself.
fn check_site(channel: &RequestChannel, site: &SiteUrl) {
    assert_eq!(site.url, format!("{}{}", site.origin, site.path));
    assert!(site.path.starts_with('/'), "{}", site.path);
    if let RequestChannel::Tunnel(tunnel) = channel {
        let Tunnel { scheme, to, .. } = tunnel;
        let short = format!("{scheme}://{}", to.host);
        assert_eq!(site.host, to.host);
        assert!(site.origin == short || site.origin == format!("{short}:{}", to.port));
    }
    let found = match read_again("GET", &site.url) {
        Ok(ProxyRequest::Control(found)) => Some(found),
        Ok(ProxyRequest::Capture(question)) => Some(question.site),
        _ => None,
    };
    assert_eq!(found.as_ref(), Some(site));
}

fn read_again(method: &str, target: &str) -> Result<ProxyRequest, InvalidProxyRequest> {
    let head = build_head(method.as_bytes(), target.as_bytes(), []).unwrap();
    read_request(&RequestChannel::Open, &head, LONGEST_URL)
}

/// A command leads to pages that change nothing, and remembers no more than it may.
fn check_command(site: &SiteUrl, form: &[u8]) {
    let (path, query) = site.path.split_once('?').unwrap_or((&site.path, ""));
    let Ok(parameters) = CommandParameters::read_parameters(query, form) else {
        return;
    };
    if let Some(path) = parameters.return_path() {
        assert!(["/", "/getStatus", "/getRecordedURIs"].contains(&path));
    }
    match Command::read_command(path, &parameters) {
        Ok(Command::Change(Change::Index { jobs, label })) => {
            assert!(jobs.len() <= 500 && label.chars().count() <= 200);
            assert!(!label.contains(char::is_control));
        }
        Ok(Command::Change(_) | Command::Ask(_)) => {}
        Err(error) => {
            assert!(!error.to_string().contains(char::is_control), "{error:?}");
        }
    }
}
