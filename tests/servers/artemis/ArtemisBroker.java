// A broker of AMQP 1.0: ArtemisBroker PORT SERVER_PEM. Plain at PORT, over TLS at PORT + 1; queues are made on first use.
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import org.apache.activemq.artemis.api.core.RoutingType;
import org.apache.activemq.artemis.core.config.Configuration;
import org.apache.activemq.artemis.core.config.impl.ConfigurationImpl;
import org.apache.activemq.artemis.core.config.impl.SecurityConfiguration;
import org.apache.activemq.artemis.core.security.Role;
import org.apache.activemq.artemis.core.server.embedded.EmbeddedActiveMQ;
import org.apache.activemq.artemis.core.settings.impl.AddressSettings;
import org.apache.activemq.artemis.spi.core.security.ActiveMQJAASSecurityManager;
import org.apache.activemq.artemis.spi.core.security.jaas.InVMLoginModule;

public class ArtemisBroker {
    public static void main(String[] args) throws Exception {
        int port = Integer.parseInt(args[0]);
        Configuration config = new ConfigurationImpl()
            .setPersistenceEnabled(false)
            .setMaxDiskUsage(-1)
            .addAcceptorConfiguration("amqp", "tcp://127.0.0.1:" + port + "?protocols=AMQP")
            .addAcceptorConfiguration("amqps", "tcp://127.0.0.1:" + (port + 1)
                + "?protocols=AMQP;sslEnabled=true;keyStoreType=PEM;keyStorePath=" + args[1])
            .addAddressSetting("#", new AddressSettings()
                .setDefaultAddressRoutingType(RoutingType.ANYCAST).setDefaultQueueRoutingType(RoutingType.ANYCAST))
            .putSecurityRoles("#", Set.of(new Role("all", true, true, true, true, true, true, true, true, true, true, false, false)));
        SecurityConfiguration users = new SecurityConfiguration();
        users.addUser("test", "secret");
        users.addRole("test", "all");
        new EmbeddedActiveMQ()
            .setConfiguration(config)
            .setSecurityManager(new ActiveMQJAASSecurityManager(InVMLoginModule.class.getName(), users))
            .start();
        new CountDownLatch(1).await();
    }
}
