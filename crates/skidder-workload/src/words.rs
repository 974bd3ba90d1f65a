//! The vocabulary of the generated lines. Order matters: the first entries are drawn most often.

/// Request methods of a web shop.
pub(super) const METHODS: &[&str] = &["GET", "GET", "GET", "POST", "PUT", "HEAD", "DELETE"];

/// Request paths; a number is appended where one ends in a slash.
pub(super) const PATHS: &[&str] = &[
    "/api/v2/catalog/products/",
    "/api/v2/cart/items/",
    "/static/js/app.3f9ac1.js",
    "/static/css/main.77b0e2.css",
    "/images/products/large/",
    "/api/v1/sessions/",
    "/search/suggest",
    "/healthz",
    "/checkout/payment/",
    "/account/orders/",
    "/api/v2/recommendations/",
    "/favicon.ico",
    "/blog/2026/03/spring-collection",
    "/api/v2/inventory/warehouses/",
    "/metrics",
    "/.well-known/security.txt",
];

/// Where requests came from.
pub(super) const REFERRERS: &[&str] = &[
    "https://shop.example.com/catalog/garden",
    "https://shop.example.com/",
    "-",
    "https://www.example.org/search?q=folding+chairs",
    "https://shop.example.com/checkout/cart",
    "https://news.example.net/articles/outdoor-living-guide",
];

/// Browsers and robots.
pub(super) const AGENTS: &[&str] = &[
    "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/138.0.0.0 Safari/537.36",
    "kube-probe/1.36",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Mobile/15E148 Safari/604.1",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.4 Safari/605.1.15",
    "Mozilla/5.0 (compatible; ExampleBot/2.1; +https://bot.example.com/about)",
    "okhttp/4.12.0",
];

/// Response status codes.
pub(super) const STATUSES: &[&str] =
    &["200", "200", "200", "200", "304", "201", "404", "302", "204", "400", "500", "503"];

/// Services that write JSON.
pub(super) const SERVICES: &[&str] =
    &["checkout", "catalog", "payment", "sessions", "search", "mailer"];

/// Log levels of the JSON lines.
pub(super) const LEVELS: &[&str] = &["info", "info", "info", "debug", "warn", "error"];

/// The messages of the JSON services.
pub(super) const EVENTS: &[&str] = &[
    "request completed",
    "cache miss",
    "payment authorised",
    "upstream timed out, retrying",
    "session renewed",
    "message queued for delivery",
    "quota check passed",
    "connection returned to the pool",
    "user \\\"guest\\\" has no saved address",
    "feature flag `new-basket` evaluated to true",
];

/// Names of threads in the Java lines.
pub(super) const THREADS: &[&str] = &[
    "nio-8080-exec-1",
    "nio-8080-exec-7",
    "nio-8080-exec-12",
    "scheduling-1",
    "kafka-consumer-0",
    "ForkJoinPool-2",
];

/// Logger, then the parts of the message around two numbers.
pub(super) const JAVA: &[&[&str; 4]] = &[
    &["c.e.shop.order.OrderService", "Order ", " accepted for customer ", ""],
    &["o.s.web.servlet.DispatcherServlet", "Completed 200 OK in ", " ms, session ", ""],
    &["c.e.shop.stock.StockLedger", "Reserved ", " units in warehouse ", " until payment"],
    &["o.h.engine.jdbc.spi.SqlExceptionHelper", "SQL Error: ", ", SQLState: ", " [deadlock]"],
    &["c.zaxxer.hikari.pool.HikariPool", "Pool stats (total=", ", active=", ", idle=4, waiting=0)"],
    &["c.e.shop.mail.Mailer", "Handed over message ", " to relay after ", " attempts"],
    &[
        "c.e.shop.payment.Gateway",
        "java.net.SocketTimeoutException: Read timed out after ",
        " ms\\n\\tat com.example.shop.payment.Gateway.call(Gateway.java:",
        ")\\n\\tat com.example.shop.payment.Retry.run(Retry.java:88)",
    ],
];

/// Places in a stack trace, up to the line.
pub(super) const FRAMES: &[&str] = &[
    "com.example.shop.order.OrderService.close(OrderService.java:",
    "com.example.shop.order.OrderController.submit(OrderController.java:",
    "java.base/jdk.internal.reflect.DirectMethodHandleAccessor.invoke(DirectMethodHandleAccessor.java:",
    "org.springframework.web.servlet.FrameworkServlet.service(FrameworkServlet.java:",
    "org.springframework.web.filter.OncePerRequestFilter.doFilter(OncePerRequestFilter.java:",
    "org.apache.catalina.core.ApplicationFilterChain.doFilter(ApplicationFilterChain.java:",
    "org.apache.coyote.http11.Http11Processor.service(Http11Processor.java:",
    "java.base/java.lang.Thread.run(Thread.java:",
];
