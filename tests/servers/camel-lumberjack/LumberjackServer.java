// Apache Camel's Lumberjack server: appends every event to a file as a JSON line. LumberjackServer PORT FILE
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.FileWriter;
import java.util.concurrent.CountDownLatch;
import org.apache.camel.builder.RouteBuilder;
import org.apache.camel.impl.DefaultCamelContext;

public class LumberjackServer {
    public static void main(String[] args) throws Exception {
        ObjectMapper json = new ObjectMapper();
        FileWriter out = new FileWriter(args[1], true);
        DefaultCamelContext camel = new DefaultCamelContext();
        camel.addRoutes(new RouteBuilder() {
            @Override
            public void configure() {
                from("lumberjack:127.0.0.1:" + args[0]).process(exchange -> {
                    synchronized (out) {
                        out.write(json.writeValueAsString(exchange.getMessage().getBody()) + "\n");
                        out.flush();
                    }
                });
            }
        });
        camel.start();
        new CountDownLatch(1).await();
    }
}
