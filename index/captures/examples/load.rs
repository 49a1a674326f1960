//! Asks a server over HTTP as fast as it answers, for `tools/bench captures`:
//! `load HOST:PORT CONNECTIONS PREFIX < TARGETS`.
//!
//! Each connection asks for one target after the other. Prints how many answers there were, the seconds, how many of
//! them were no 200, the bytes of their bodies, and half and 99 of a hundred of the times of answers in microseconds.

use std::error::Error;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::linux::net::TcpStreamExt as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

type Failure = Box<dyn Error + Send + Sync>;

#[derive(Default)]
struct Answers {
    times: Vec<Duration>,
    others: u64,
    bytes: u64,
}

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let (Some(address), Some(connections), Some(prefix)) =
        (arguments.next(), arguments.next(), arguments.next())
    else {
        return Err("say HOST:PORT, how many connections, and what precedes each target".into());
    };
    let targets = io::stdin().lines().collect::<io::Result<Vec<_>>>()?;
    let next = AtomicUsize::new(0);
    let all = Mutex::new(Answers::default());
    let start = Instant::now();
    thread::scope(|scope| -> Result<(), Failure> {
        let ask = || -> Result<(), Failure> {
            let answers = ask(&address, &prefix, &targets, &next)?;
            let mut all = all.lock();
            all.times.extend(answers.times);
            all.others += answers.others;
            all.bytes += answers.bytes;
            Ok(())
        };
        let threads: Vec<_> = (0..connections.parse::<usize>()?)
            .map(|_| scope.spawn(ask))
            .collect();
        for thread in threads {
            thread.join().map_err(|_panic| "a thread failed")??;
        }
        Ok(())
    })?;
    let seconds = start.elapsed().as_secs_f64();
    let mut all = all.into_inner();
    all.times.sort_unstable();
    let micros = |part: usize| {
        let at = all.times.len().saturating_sub(1) * part / 100;
        all.times.get(at).map_or(0, Duration::as_micros)
    };
    writeln!(
        io::stdout(),
        "{} {seconds:.3} {} {} {} {}",
        all.times.len(),
        all.others,
        all.bytes,
        micros(50),
        micros(99)
    )?;
    Ok(())
}

fn connect(address: &str) -> io::Result<BufReader<TcpStream>> {
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    Ok(BufReader::with_capacity(64 << 10, stream))
}

fn ask(
    address: &str,
    prefix: &str,
    targets: &[String],
    next: &AtomicUsize,
) -> Result<Answers, Failure> {
    let mut answers = Answers::default();
    let mut connection = connect(address)?;
    while let Some(target) = targets.get(next.fetch_add(1, Ordering::Relaxed)) {
        let request = format!("GET {prefix}{target} HTTP/1.1\r\nHost: {address}\r\n\r\n");
        let start = Instant::now();
        // A server that sends its answer in pieces, and waits in between for our system to confirm the first, is not
        // measured by the 40 ms that this takes.
        connection.get_ref().set_quickack(true)?;
        connection.get_mut().write_all(request.as_bytes())?;
        let answer = answer(&mut connection)?;
        answers.times.push(start.elapsed());
        answers.others += u64::from(answer.status != 200);
        answers.bytes += answer.bytes;
        if answer.is_last {
            connection = connect(address)?;
        }
    }
    Ok(answers)
}

struct Answer {
    status: u16,
    bytes: u64,
    is_last: bool,
}

fn answer(connection: &mut BufReader<TcpStream>) -> Result<Answer, Failure> {
    let mut line = String::new();
    connection.read_line(&mut line)?;
    let status = line.split(' ').nth(1).ok_or("the server hung up")?;
    let mut answer = Answer {
        status: status.parse()?,
        bytes: 0,
        is_last: false,
    };
    let mut length = None;
    let mut is_chunked = false;
    loop {
        line.clear();
        connection.read_line(&mut line)?;
        let field = line.trim_end().to_ascii_lowercase();
        let Some((name, value)) = field.split_once(':') else {
            break;
        };
        match (name, value.trim()) {
            ("content-length", value) => length = Some(value.parse()?),
            ("transfer-encoding", "chunked") => is_chunked = true,
            ("connection", "close") => answer.is_last = true,
            _ => {}
        }
    }
    if is_chunked {
        loop {
            line.clear();
            connection.read_line(&mut line)?;
            let size = u64::from_str_radix(line.trim_end(), 16)?;
            skip(connection, size + 2)?;
            if size == 0 {
                return Ok(answer);
            }
            answer.bytes += size;
        }
    }
    if let Some(length) = length {
        skip(connection, length)?;
        answer.bytes = length;
    } else {
        answer.bytes = io::copy(connection, &mut io::sink())?;
        answer.is_last = true;
    }
    Ok(answer)
}

fn skip(connection: &mut BufReader<TcpStream>, bytes: u64) -> Result<(), Failure> {
    if io::copy(&mut connection.take(bytes), &mut io::sink())? == bytes {
        return Ok(());
    }
    Err("an answer was cut".into())
}
