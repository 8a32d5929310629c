import java.nio.file.Path;
import java.util.Map;
import java.util.Set;
import org.apache.activemq.artemis.api.core.SimpleString;
import org.apache.activemq.artemis.core.config.Configuration;
import org.apache.activemq.artemis.core.config.impl.ConfigurationImpl;
import org.apache.activemq.artemis.core.security.CheckType;
import org.apache.activemq.artemis.core.security.Role;
import org.apache.activemq.artemis.core.server.ActiveMQServer;
import org.apache.activemq.artemis.core.server.ActiveMQServers;
import org.apache.activemq.artemis.spi.core.security.ActiveMQSecurityManager;

/**
 * Apache ActiveMQ Artemis for the programs of test/real/programs, with its MQTT acceptor on TCP, TLS and WebSocket.
 *
 * <p>Arguments: folder, setup, user name, password, the ports for TCP (where WebSocket is answered too) and TLS, the key store and its password. It
 * ends with its standard input, so that it never outlives the test.
 */
public final class ProgramBroker {
  private ProgramBroker() {}

  public static void main(String[] arguments) throws Exception {
    Path folder = Path.of(arguments[0]);
    boolean guarded = arguments[1].equals("guarded");
    boolean durable = arguments[1].equals("durable");
    Configuration configuration = new ConfigurationImpl();
    configuration.setPersistenceEnabled(durable);
    configuration.setSecurityEnabled(guarded);
    configuration.setJournalDirectory(folder.resolve("journal").toString());
    configuration.setBindingsDirectory(folder.resolve("bindings").toString());
    configuration.setPagingDirectory(folder.resolve("paging").toString());
    configuration.setLargeMessagesDirectory(folder.resolve("large").toString());
    configuration.setMaxDiskUsage(-1);
    configuration.setGracefulShutdownEnabled(false);
    configuration.addAcceptorConfiguration("tcp", "tcp://127.0.0.1:" + arguments[4] + "?protocols=MQTT");
    configuration.addAcceptorConfiguration(
        "tls",
        "tcp://127.0.0.1:" + arguments[5] + "?protocols=MQTT;sslEnabled=true;keyStoreType=PKCS12;keyStorePath=" + arguments[6] + ";keyStorePassword=" + arguments[7]);
    ActiveMQServer server = ActiveMQServers.newActiveMQServer(configuration, null, new Access(arguments[2], arguments[3]), durable);
    Runtime.getRuntime().addShutdownHook(new Thread(() -> stop(server)));
    server.start();
    System.out.println("ProgramBroker is ready");
    while (System.in.read() >= 0) {
      // Nothing is said to it: only the end matters.
    }
    System.exit(0);
  }

  private static void stop(ActiveMQServer server) {
    try {
      server.stop();
    } catch (Exception error) {
      error.printStackTrace();
    }
  }

  /** Who may connect; whoever may do so may do everything. */
  private record Access(String username, String password) implements ActiveMQSecurityManager {
    @Override
    public boolean validateUser(String user, String word) {
      return username.equals(user) && password.equals(word);
    }

    @Override
    public boolean validateUserAndRole(String user, String word, Set<Role> roles, CheckType checkType) {
      return validateUser(user, word);
    }
  }
}
