pub struct HttpTransport;
