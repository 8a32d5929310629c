import com.hivemq.embedded.EmbeddedExtension;
import com.hivemq.embedded.EmbeddedHiveMQ;
import com.hivemq.extension.sdk.api.ExtensionMain;
import com.hivemq.extension.sdk.api.auth.SimpleAuthenticator;
import com.hivemq.extension.sdk.api.auth.parameter.SimpleAuthInput;
import com.hivemq.extension.sdk.api.auth.parameter.SimpleAuthOutput;
import com.hivemq.extension.sdk.api.auth.parameter.TopicPermission.PermissionType;
import com.hivemq.extension.sdk.api.packets.auth.DefaultAuthorizationBehaviour;
import com.hivemq.extension.sdk.api.packets.connect.ConnackReasonCode;
import com.hivemq.extension.sdk.api.parameter.ExtensionStartInput;
import com.hivemq.extension.sdk.api.parameter.ExtensionStartOutput;
import com.hivemq.extension.sdk.api.parameter.ExtensionStopInput;
import com.hivemq.extension.sdk.api.parameter.ExtensionStopOutput;
import com.hivemq.extension.sdk.api.services.Services;
import com.hivemq.extension.sdk.api.services.builder.Builders;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Optional;

/**
 * HiveMQ Community Edition for the features of test/real, in one of the setups that test/real/brokers.ts names.
 *
 * <p>Arguments: folder with config.xml, setup, user name, password. It ends with its standard input, so that it never outlives the test.
 */
public final class FeatureBroker {
  private FeatureBroker() {}

  public static void main(String[] arguments) throws Exception {
    Path folder = Path.of(arguments[0]);
    EmbeddedExtension extension =
        EmbeddedExtension.builder()
            .withId("features")
            .withName("features")
            .withVersion("1")
            .withAuthor("features")
            .withPriority(0)
            .withStartPriority(1000)
            .withExtensionMain(new Access(arguments[1], arguments[2], arguments[3]))
            .build();
    EmbeddedHiveMQ broker =
        EmbeddedHiveMQ.builder()
            .withConfigurationFolder(folder)
            .withDataFolder(folder.resolve("data"))
            .withExtensionsFolder(folder.resolve("extensions"))
            .withEmbeddedExtension(extension)
            .build();
    Runtime.getRuntime().addShutdownHook(new Thread(() -> broker.stop().join()));
    broker.start().join();
    System.out.println("FeatureBroker is ready");
    while (System.in.read() >= 0) {
      // Nothing is said to it: only the end matters.
    }
    System.exit(0);
  }

  /** Who may connect, and what they may do. */
  private record Access(String setup, String username, String password) implements ExtensionMain {
    @Override
    public void extensionStart(ExtensionStartInput input, ExtensionStartOutput output) {
      SimpleAuthenticator simple = setup.equals("guarded") ? this::guard : (asked, answer) -> answer.authenticateSuccessfully();
      Services.securityRegistry().setAuthenticatorProvider(ignored -> simple);
      if (setup.equals("scram")) {
        Services.securityRegistry().setEnhancedAuthenticatorProvider(ignored -> new Scram(username, password));
      }
    }

    @Override
    public void extensionStop(ExtensionStopInput input, ExtensionStopOutput output) {}

    private void guard(SimpleAuthInput asked, SimpleAuthOutput answer) {
      Optional<String> name = asked.getConnectPacket().getUserName();
      Optional<String> word = asked.getConnectPacket().getPassword().map(bytes -> StandardCharsets.UTF_8.decode(bytes).toString());
      if (!name.equals(Optional.of(username)) || !word.equals(Optional.of(password))) {
        answer.failAuthentication(ConnackReasonCode.BAD_USER_NAME_OR_PASSWORD);
        return;
      }
      answer.getDefaultPermissions().add(Builders.topicPermission().topicFilter("+/denied/#").type(PermissionType.DENY).build());
      answer.getDefaultPermissions().setDefaultBehaviour(DefaultAuthorizationBehaviour.ALLOW);
      answer.authenticateSuccessfully();
    }
  }
}
