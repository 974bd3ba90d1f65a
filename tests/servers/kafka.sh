#!/usr/bin/env bash
# Apache Kafka 4.3.1, one node (KRaft), its jars from Maven Central. Without encryption on PORT, without users; free
# ports beyond it: SASL (test/secret by PLAIN and SCRAM), TLS (certificates in DIR/certs; one of the client is asked
# for), SASL over TLS, TLS with a certificate that is expired, with one of another host. The URL names them all.
# BEHIND=PORT and PROXY=PORT add a listener without encryption on BEHIND that tells everybody that its address is
# PROXY, where a proxy before it can stand. SETTINGS='NAME=VALUE ...' adds to its settings.
. "$(dirname "$0")/lib.sh"
. "$here/java.sh"
jars=$kept/lib

lock
debian openssl=openssl python3=python3
java_home
wanted=$(cat "$here"/kafka/* "$0" | cksum)
if [ "$(cat "$kept/installed" 2>/dev/null)" != "$wanted" ]; then
  maven "$here/kafka/pom.xml" "$jars"
  echo "$wanted" >"$kept/installed"
fi
unlock
[ "$action" = start ] || exit 0

"$here/certs.sh" "$dir/certs"
rm -rf "$dir/data"
next=$port
free() { # sets `found` to the next port that nobody has
  next=$((next + 1))
  while answers_tcp "$next"; do next=$((next + 1)); done
  found=$next
}
free; sasl=$found; free; tls=$found; free; sasl_tls=$found; free; expired=$found
free; wrong_host=$found; free; controller=$found
behind=${BEHIND:-0}
at() { echo "$1://127.0.0.1:$2"; }
listeners=$(at PLAIN "$port"),$(at SASL "$sasl"),$(at TLS "$tls"),$(at SASLTLS "$sasl_tls"),$(at EXPIRED "$expired"),$(at WRONGHOST "$wrong_host")
advertised=$listeners
if [ "$behind" != 0 ]; then
  listeners+=,$(at BEHIND "$behind") advertised+=,$(at BEHIND "$PROXY")
fi
login=org.apache.kafka.common.security
{
  cat <<CONF
process.roles=broker,controller
node.id=1
listeners=$listeners,$(at CONTROLLER "$controller")
advertised.listeners=$advertised
inter.broker.listener.name=PLAIN
controller.listener.names=CONTROLLER
controller.quorum.bootstrap.servers=127.0.0.1:$controller
listener.security.protocol.map=PLAIN:PLAINTEXT,SASL:SASL_PLAINTEXT,TLS:SSL,SASLTLS:SASL_SSL,EXPIRED:SSL,WRONGHOST:SSL,BEHIND:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs=$dir/data
num.partitions=3
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
allow.everyone.if.no.acl.found=true
super.users=User:ANONYMOUS
sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512
ssl.truststore.type=PEM
ssl.truststore.location=$dir/certs/ca.crt
ssl.client.auth=requested
CONF
  for listener in sasl sasltls; do
    echo "listener.name.$listener.plain.sasl.jaas.config=$login.plain.PlainLoginModule required user_test=\"secret\";"
    echo "listener.name.$listener.scram-sha-256.sasl.jaas.config=$login.scram.ScramLoginModule required;"
    echo "listener.name.$listener.scram-sha-512.sasl.jaas.config=$login.scram.ScramLoginModule required;"
  done
  for pair in tls=server sasltls=server expired=expired wronghost=wrong-host; do
    cat "$dir/certs/${pair#*=}.key" "$dir/certs/${pair#*=}.crt" >"$dir/certs/${pair#*=}.pem"
    echo "listener.name.${pair%%=*}.ssl.keystore.type=PEM"
    echo "listener.name.${pair%%=*}.ssl.keystore.location=$dir/certs/${pair#*=}.pem"
  done
  printf '%s\n' ${SETTINGS:-}
} >"$dir/server.properties"
quietly "$java/bin/java" -cp "$jars/*" kafka.tools.StorageTool format --standalone \
  "--cluster-id=$(head -c16 /dev/urandom | base64 | tr '+/' '-_' | tr -d =)" --config "$dir/server.properties" \
  --add-scram 'SCRAM-SHA-256=[name=test,password=secret]' --add-scram 'SCRAM-SHA-512=[name=test,password=secret]'
launch "$java/bin/java" -Xms192m -Xmx384m -Dorg.apache.logging.log4j.level=INFO -cp "$jars/*" kafka.Kafka "$dir/server.properties"
ready "kafka://127.0.0.1:$port?sasl=$sasl&tls=$tls&sasl_tls=$sasl_tls&expired=$expired&wrong_host=$wrong_host&behind=$behind&directory=$dir" \
  180 grep -q 'Kafka Server started' "$dir/log"
