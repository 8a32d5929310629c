import static java.nio.charset.StandardCharsets.UTF_8;

import com.hivemq.extension.sdk.api.auth.EnhancedAuthenticator;
import com.hivemq.extension.sdk.api.auth.parameter.EnhancedAuthConnectInput;
import com.hivemq.extension.sdk.api.auth.parameter.EnhancedAuthInput;
import com.hivemq.extension.sdk.api.auth.parameter.EnhancedAuthOutput;
import com.hivemq.extension.sdk.api.packets.auth.AuthPacket;
import com.hivemq.extension.sdk.api.packets.general.DisconnectedReasonCode;
import java.nio.ByteBuffer;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.Arrays;
import java.util.Base64;
import java.util.Optional;
import javax.crypto.Mac;
import javax.crypto.SecretKeyFactory;
import javax.crypto.spec.PBEKeySpec;
import javax.crypto.spec.SecretKeySpec;

/** The server's side of SCRAM-SHA-256 (RFC 5802, RFC 7677) for one user and one client, at CONNECT and at each re-authentication. */
final class Scram implements EnhancedAuthenticator {
  private static final String METHOD = "SCRAM-SHA-256";
  private static final byte[] SALT = "sixteen bytes!!!".getBytes(UTF_8);
  private static final int ROUNDS = 4096;

  private final String username;
  private final byte[] saltedPassword;
  private String clientFirst = "";
  private String serverFirst = "";

  Scram(String username, String password) {
    this.username = username;
    try {
      PBEKeySpec spec = new PBEKeySpec(password.toCharArray(), SALT, ROUNDS, 256);
      saltedPassword = SecretKeyFactory.getInstance("PBKDF2WithHmacSHA256").generateSecret(spec).getEncoded();
    } catch (GeneralSecurityException error) {
      throw new IllegalStateException(error);
    }
  }

  @Override
  public void onConnect(EnhancedAuthConnectInput input, EnhancedAuthOutput output) {
    // It is asked for every client, also for those without a method.
    if (input.getConnectPacket().getAuthenticationMethod().equals(Optional.of(METHOD))) {
      begin(input.getConnectPacket().getAuthenticationData(), output);
    } else {
      output.failAuthentication(DisconnectedReasonCode.BAD_AUTHENTICATION_METHOD);
    }
  }

  @Override
  public void onReAuth(EnhancedAuthInput input, EnhancedAuthOutput output) {
    begin(input.getAuthPacket().getAuthenticationData(), output);
  }

  @Override
  public void onAuth(EnhancedAuthInput input, EnhancedAuthOutput output) {
    try {
      conclude(input.getAuthPacket(), output);
    } catch (GeneralSecurityException error) {
      output.failAuthentication(DisconnectedReasonCode.NOT_AUTHORIZED);
    }
  }

  private void begin(Optional<ByteBuffer> data, EnhancedAuthOutput output) {
    String first = data.map(bytes -> UTF_8.decode(bytes).toString()).orElse("");
    if (!first.startsWith("n,,n=" + username + ",r=")) {
      output.failAuthentication(DisconnectedReasonCode.NOT_AUTHORIZED);
      return;
    }
    clientFirst = first.substring(3);
    String nonce = clientFirst.substring(clientFirst.indexOf(",r=") + 3) + "of-the-server";
    serverFirst = "r=" + nonce + ",s=" + Base64.getEncoder().encodeToString(SALT) + ",i=" + ROUNDS;
    output.continueAuthentication(serverFirst.getBytes(UTF_8));
  }

  private void conclude(AuthPacket packet, EnhancedAuthOutput output) throws GeneralSecurityException {
    String last = new String(packet.getAuthenticationDataAsArray().orElse(new byte[0]), UTF_8);
    int at = last.lastIndexOf(",p=");
    if (at < 0) {
      output.failAuthentication(DisconnectedReasonCode.NOT_AUTHORIZED);
      return;
    }
    byte[] spoken = (clientFirst + "," + serverFirst + "," + last.substring(0, at)).getBytes(UTF_8);
    byte[] key = mac(saltedPassword, "Client Key".getBytes(UTF_8));
    byte[] proof = mac(MessageDigest.getInstance("SHA-256").digest(key), spoken);
    for (int index = 0; index < proof.length; index++) {
      proof[index] ^= key[index];
    }
    if (!Arrays.equals(proof, Base64.getDecoder().decode(last.substring(at + 3)))) {
      output.failAuthentication(DisconnectedReasonCode.NOT_AUTHORIZED);
      return;
    }
    byte[] signature = mac(mac(saltedPassword, "Server Key".getBytes(UTF_8)), spoken);
    output.authenticateSuccessfully(("v=" + Base64.getEncoder().encodeToString(signature)).getBytes(UTF_8));
  }

  private static byte[] mac(byte[] key, byte[] text) throws GeneralSecurityException {
    Mac mac = Mac.getInstance("HmacSHA256");
    mac.init(new SecretKeySpec(key, "HmacSHA256"));
    return mac.doFinal(text);
  }
}
