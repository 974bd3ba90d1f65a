//! Answers that are taken piece by piece, so that a long one never stands in memory as a whole.

use crate::connection::{Connection, ConnectionError, Pieces, read_body, request_of, within};
use crate::redact::Redactor;
use bytes::Bytes;
use http::{HeaderMap, Method, Uri};
use hyper::body::{Body as _, Incoming};
use std::pin::Pin;
use std::time::Duration;

/// The body of an answer, which is still on its way. It holds the connection: dropping it before the end closes that.
#[derive(Debug)]
pub struct AnswerPieces {
    body: Incoming,
    /// What came with the piece before and was more than its bound.
    rest: Bytes,
    /// Nothing after an error.
    connection: Option<Connection>,
    redactor: Redactor,
    is_at_end: bool,
}

/// The beginning of an answer.
#[derive(Debug)]
pub struct StreamedAnswer {
    /// The HTTP status.
    pub status: u16,
    /// Its headers.
    pub headers: HeaderMap,
    /// What follows.
    pub body: AnswerPieces,
}

impl Connection {
    /// Sends a request and returns the beginning of the answer, which must come within `timeout`. The body is read from
    /// the result.
    ///
    /// # Errors
    ///
    /// There is no answer; the connection is gone.
    pub async fn send_streamed(
        mut self,
        method: Method,
        uri: Uri,
        headers: HeaderMap,
        body: Pieces,
        timeout: Duration,
    ) -> Result<StreamedAnswer, ConnectionError> {
        let mut request = request_of(method, uri, headers, body);
        let answer = within(timeout, async {
            self.log_in(&mut request).await?;
            let redactor = Redactor::of(request.headers());
            Ok((self.start(request).await?, redactor))
        });
        let (answer, redactor) = answer.await?;
        let (head, body) = answer.into_parts();
        let connection = Some(self);
        let body =
            AnswerPieces { body, rest: Bytes::new(), connection, redactor, is_at_end: false };
        Ok(StreamedAnswer { status: head.status.as_u16(), headers: head.headers, body })
    }
}

impl AnswerPieces {
    /// The next piece: 1 to `bytes_max` bytes, for which it waits `timeout` at most; `None` at the end of the body. What is
    /// in memory besides is what the connection has read ahead, at most some 400 KiB. Loses nothing if it is cancelled.
    ///
    /// # Errors
    ///
    /// The connection broke before the end that the server had announced, or nothing came in time. Then it is gone, and so
    /// is the rest of the body: further calls fail too.
    ///
    /// # Panics
    ///
    /// If `bytes_max` is 0.
    pub async fn piece(
        &mut self,
        bytes_max: usize,
        timeout: Duration,
    ) -> Result<Option<Bytes>, ConnectionError> {
        assert!(bytes_max > 0, "a piece has at least one byte");
        while self.rest.is_empty() && !self.is_at_end {
            if self.connection.is_none() {
                return Err(ConnectionError::Lost);
            }
            let body = &mut self.body;
            let next = std::future::poll_fn(|context| Pin::new(&mut *body).poll_frame(context));
            let next = within(timeout, async { Ok(next.await) });
            match next.await.and_then(|next| next.transpose().map_err(ConnectionError::Broken)) {
                // Trailers are no data.
                Ok(Some(frame)) => self.rest = frame.into_data().unwrap_or_default(),
                Ok(None) => self.is_at_end = true,
                Err(error) => {
                    self.connection = None;
                    return Err(error);
                }
            }
        }
        if self.rest.is_empty() {
            return Ok(None);
        }
        Ok(Some(self.rest.split_to(self.rest.len().min(bytes_max))))
    }

    /// Reads the body of a refusal into `answer` within `timeout`, without the secrets of the request, and returns the
    /// connection. To be called before [`AnswerPieces::piece`].
    ///
    /// # Errors
    ///
    /// The connection broke, nothing came in time, or there are more than `bytes_max` bytes.
    pub async fn refusal(
        self,
        answer: &mut Vec<u8>,
        bytes_max: usize,
        timeout: Duration,
    ) -> Result<Option<Connection>, ConnectionError> {
        answer.clear();
        let Self { body, connection, redactor, .. } = self;
        within(timeout, read_body(body, answer, bytes_max)).await?;
        redactor.hide(answer);
        Ok(connection.map(Connection::into_used))
    }

    /// The connection, for the next request; `None` unless the whole body was taken.
    pub fn into_connection(self) -> Option<Connection> {
        let is_whole = self.is_at_end && self.rest.is_empty();
        self.connection.filter(|_| is_whole).map(Connection::into_used)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;
    use http::header::AUTHORIZATION;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};

    const SOON: Duration = Duration::from_mins(1);

    /// Reads the head of a request.
    async fn request(theirs: &mut DuplexStream) -> String {
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            request.push(theirs.read_u8().await.unwrap());
        }
        String::from_utf8(request).unwrap()
    }

    async fn ask(connection: Connection) -> StreamedAnswer {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, HeaderValue::from_static("Bearer geheimnis"));
        let (uri, body) = (Uri::from_static("/"), Pieces::new(&[]));
        connection.send_streamed(Method::GET, uri, headers, body, SOON).await.unwrap()
    }

    #[tokio::test]
    async fn a_long_body_is_taken_in_bounded_pieces_and_the_connection_goes_on() {
        const BYTES: usize = 3 << 20;
        let (ours, mut theirs) = tokio::io::duplex(1 << 16);
        let serving = async move {
            for _ in 0..2 {
                request(&mut theirs).await;
                let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {BYTES}\r\n\r\n");
                theirs.write_all(head.as_bytes()).await.unwrap();
                let body: Vec<u8> = (0..BYTES).map(|at| (at % 251) as u8).collect();
                theirs.write_all(&body).await.unwrap();
            }
            theirs
        };
        let asking = async {
            let mut connection = Connection::over(Box::new(ours), None).await.unwrap();
            for bytes_max in [1000, usize::MAX] {
                let mut answer = ask(connection).await;
                assert_eq!(answer.status, 200);
                assert_eq!(answer.headers["content-length"], "3145728");
                let mut at = 0;
                while let Some(piece) = answer.body.piece(bytes_max, SOON).await.unwrap() {
                    assert!((1..=bytes_max.min(1 << 20)).contains(&piece.len()), "{}", piece.len());
                    assert!(
                        piece.iter().enumerate().all(|(i, byte)| *byte == ((at + i) % 251) as u8)
                    );
                    at += piece.len();
                }
                assert_eq!(at, BYTES);
                connection = answer.body.into_connection().unwrap();
                assert!(connection.is_used() && connection.is_open());
            }
        };
        tokio::join!(serving, asking);
    }

    #[tokio::test]
    async fn a_body_that_is_cut_or_stops_is_an_error_and_never_an_end() {
        for is_cut in [true, false] {
            let (ours, mut theirs) = tokio::io::duplex(4096);
            let serving = async move {
                request(&mut theirs).await;
                let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc";
                theirs.write_all(answer).await.unwrap();
                if is_cut { None } else { Some(theirs) }
            };
            let asking = async {
                let connection = Connection::over(Box::new(ours), None).await.unwrap();
                let mut body = ask(connection).await.body;
                let soon = Duration::from_millis(50);
                assert_eq!(body.piece(2, SOON).await.unwrap().unwrap(), "ab");
                assert_eq!(body.piece(2, SOON).await.unwrap().unwrap(), "c");
                let error = body.piece(2, soon).await.unwrap_err();
                let is_late = matches!(error, ConnectionError::Timeout(_));
                assert_eq!(is_late, !is_cut, "{error}");
                let error = body.piece(2, soon).await.unwrap_err();
                assert!(matches!(error, ConnectionError::Lost), "{error}");
                assert!(body.into_connection().is_none());
            };
            tokio::join!(serving, asking);
        }
    }

    #[tokio::test]
    async fn a_refusal_is_read_whole_without_secrets() {
        let (ours, mut theirs) = tokio::io::duplex(4096);
        let serving = async move {
            request(&mut theirs).await;
            let answer = b"HTTP/1.1 403 No\r\ncontent-length: 15\r\n\r\ngeheimnis is it";
            theirs.write_all(answer).await.unwrap();
            theirs
        };
        let asking = async {
            let connection = Connection::over(Box::new(ours), None).await.unwrap();
            let mut answer = Vec::new();
            let body = ask(connection).await.body;
            let connection = body.refusal(&mut answer, 100, SOON).await.unwrap().unwrap();
            assert!(connection.is_used() && connection.is_open());
            assert_eq!(String::from_utf8(answer).unwrap(), "xxxxxxxxx is it");
        };
        tokio::join!(serving, asking);
    }
}
