#!/usr/bin/env bash
# A real Kubernetes for tests, in namespaces of its own: every process, address
# and firewall rule of it ends with one process, and nothing reaches outside.
#
#   cluster.sh up fake DIR     control plane, fake nodes (kwok): pods run nothing
#   cluster.sh up real DIR     control plane, one real node: pods are containers
#   cluster.sh run DIR CMD...  a command inside (kubectl, helm, pytest, curl)
#   cluster.sh load DIR TAR    an image archive (OCI) for the real node's pods
#   cluster.sh down DIR
#
# IMAGES holds image archives for `up real`: pause.tar at least (see images.sh).
# K8S names the binary built from main.go (default: bin/k8s beside this file).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
K8S=${K8S:-$here/bin/k8s} IMAGES=${IMAGES:-$here/images}
# 198.18.0.0/15 is set aside for test networks; here it exists only inside.
node_ip=198.18.0.1 pods=198.18.64.0/18 services=198.19.0.0/16

inside() { # DIR CMD...: join the cluster's namespaces
  local dir; dir=$(cd "$1" && pwd); shift
  KUBECONFIG=$dir/kubeconfig nsenter -t "$(cat "$dir/pid")" -m -n -p -C -i -u -- \
    sh -c 'cd "$0" && exec "$@"' "$PWD" "$@"
}

wait_for() { # SECONDS CMD...
  local end=$((SECONDS + $1)); shift
  until "$@" >/dev/null 2>&1; do
    ((SECONDS < end)) || { echo "cluster: gave up waiting for: $*" >&2; return 1; }
    sleep 0.2
  done
}

part() { # NAME FLAGS...: one part in the background, its log beside the state
  local name=$1; shift
  "$K8S" "$name" "$@" >"$D/log/$name.log" 2>&1 &
}

network() {
  ip link set lo up
  ip link add node0 type bridge
  ip addr add $node_ip/24 dev node0
  ip link set node0 up
  ip route add default dev node0
  sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.all.route_localnet=1
}

identity() {
  local p=$D/pki
  mkdir -p "$p"
  openssl genrsa -out "$p/sa.key" 2048 2>/dev/null
  openssl rsa -in "$p/sa.key" -pubout -out "$p/sa.pub" 2>/dev/null
  openssl req -x509 -newkey rsa:2048 -nodes -days 30 -subj /CN=cluster-ca \
    -keyout "$p/ca.key" -out "$p/ca.crt" 2>/dev/null
  cert() { # NAME SUBJECT SANS
    openssl req -newkey rsa:2048 -nodes -subj "$2" -keyout "$p/$1.key" 2>/dev/null |
      openssl x509 -req -days 30 -CA "$p/ca.crt" -CAkey "$p/ca.key" -CAcreateserial \
        -extfile <(echo "subjectAltName=$3") -out "$p/$1.crt" 2>/dev/null
  }
  cert apiserver /CN=kube-apiserver "DNS:localhost,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,IP:127.0.0.1,IP:$node_ip,IP:198.19.0.1"
  cert front-proxy /CN=front-proxy DNS:front-proxy
  cert admin /O=system:masters/CN=admin DNS:admin
  cat >"$D/kubeconfig" <<Y
apiVersion: v1
kind: Config
current-context: test
clusters: [{name: test, cluster: {server: "https://127.0.0.1:6443", certificate-authority: $p/ca.crt}}]
users: [{name: admin, user: {client-certificate: $p/admin.crt, client-key: $p/admin.key}}]
contexts: [{name: test, context: {cluster: test, user: admin}}]
Y
}

control_plane() {
  local p=$D/pki c="--kubeconfig=$D/kubeconfig"
  part etcd --data-dir "$D/etcd" --unsafe-no-fsync --log-level warn \
    --listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379 \
    --listen-peer-urls http://127.0.0.1:2380
  part kube-apiserver --etcd-servers http://127.0.0.1:2379 --allow-privileged \
    --advertise-address $node_ip --secure-port 6443 --service-cluster-ip-range $services \
    --tls-cert-file "$p/apiserver.crt" --tls-private-key-file "$p/apiserver.key" \
    --client-ca-file "$p/ca.crt" --authorization-mode Node,RBAC \
    --kubelet-preferred-address-types InternalIP \
    --kubelet-client-certificate "$p/admin.crt" --kubelet-client-key "$p/admin.key" \
    --service-account-issuer https://kubernetes.default.svc \
    --service-account-key-file "$p/sa.pub" --service-account-signing-key-file "$p/sa.key" \
    --requestheader-client-ca-file "$p/ca.crt" --requestheader-allowed-names front-proxy \
    --requestheader-username-headers X-Remote-User --requestheader-group-headers X-Remote-Group \
    --requestheader-extra-headers-prefix X-Remote-Extra- --enable-aggregator-routing \
    --proxy-client-cert-file "$p/front-proxy.crt" --proxy-client-key-file "$p/front-proxy.key"
  wait_for 90 "$K8S" kubectl get --raw /readyz
  part kube-controller-manager $c --leader-elect=false --root-ca-file "$p/ca.crt" \
    --service-account-private-key-file "$p/sa.key" --use-service-account-credentials \
    --allocate-node-cidrs --cluster-cidr $pods --service-cluster-ip-range $services \
    --horizontal-pod-autoscaler-sync-period 5s --horizontal-pod-autoscaler-downscale-stabilization 10s
  part kube-scheduler $c --leader-elect=false
  wait_for 60 "$K8S" kubectl get serviceaccount default
}

fake_nodes() {
  local zone
  for n in 1 2 3; do
    zone=abc; zone=${zone:n-1:1}
    "$K8S" kubectl create -f - >/dev/null <<Y
apiVersion: v1
kind: Node
metadata:
  name: fake-$n
  annotations: {kwok.x-k8s.io/node: fake, metrics.k8s.io/resource-metrics-path: /metrics/nodes/fake-$n/metrics/resource}
  labels: {type: kwok, kubernetes.io/hostname: fake-$n, kubernetes.io/os: linux, topology.kubernetes.io/zone: $zone}
status:
  allocatable: {cpu: "8", memory: 16Gi, pods: "110"}
  capacity: {cpu: "8", memory: 16Gi, pods: "110"}
Y
  done
  "$K8S" kwok-config >"$D/kwok.yaml"
  # Without leases the nodes would be taken for lost after 50 s, and their pods for not ready.
  part kwok --kubeconfig "$D/kubeconfig" --config "$D/kwok.yaml" --manage-all-nodes=true --node-lease-duration-seconds 40 \
    --cidr 198.18.64.0/18 --node-ip $node_ip --node-port 10247 \
    --tls-cert-file "$D/pki/apiserver.crt" --tls-private-key-file "$D/pki/apiserver.key"
}

real_node() {
  mkdir -p "$D/cni" "$D/containerd" /run/k8s-test
  cat >"$D/cni/10-bridge.conflist" <<J
{"cniVersion": "1.0.0", "name": "pods", "plugins": [
  {"type": "bridge", "bridge": "pods0", "isGateway": true, "hairpinMode": true, "ipMasq": false,
   "ipam": {"type": "host-local", "dataDir": "$D/cni/ipam", "ranges": [[{"subnet": "198.18.64.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
J
  cat >"$D/containerd.toml" <<T
version = 2
root = "$D/containerd"
state = "/run/k8s-test/containerd"
[grpc]
  address = "/run/k8s-test/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  disable_apparmor = true
  restrict_oom_score_adj = true # no CAP_SYS_RESOURCE here: a lower score is refused
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "$D/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
T
  containerd --config "$D/containerd.toml" >"$D/log/containerd.log" 2>&1 &
  wait_for 30 ctr -a /run/k8s-test/containerd.sock version
  for tar in "$IMAGES"/*.tar; do
    ctr -a /run/k8s-test/containerd.sock -n k8s.io images import "$tar" >/dev/null
  done
  cat >"$D/kubelet.yaml" <<Y
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: $node_ip
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $D/pki/ca.crt}}
authorization: {mode: Webhook}
cgroupDriver: cgroupfs
failCgroupV1: false
failSwapOn: false
containerRuntimeEndpoint: unix:///run/k8s-test/containerd.sock
clusterDomain: cluster.local
clusterDNS: [$node_ip]
resolvConf: ""
evictionHard: {memory.available: 100Mi, nodefs.available: 1%, nodefs.inodesFree: 1%, imagefs.available: 1%}
imageGCHighThresholdPercent: 100
nodeStatusUpdateFrequency: 5s
syncFrequency: 10s
Y
  part kubelet --kubeconfig "$D/kubeconfig" --config "$D/kubelet.yaml" --root-dir "$D/kubelet" \
    --hostname-override real-1 --node-ip $node_ip
  part kube-proxy --kubeconfig "$D/kubeconfig" --hostname-override real-1 --cluster-cidr $pods \
    --proxy-mode iptables --conntrack-max-per-core 0
}

dns() { # names of services and pods, on the node's own address
  cat >"$D/Corefile" <<C
.:53 {
  errors
  kubernetes cluster.local in-addr.arpa {
    kubeconfig $D/kubeconfig
  }
}
C
  part coredns -conf "$D/Corefile"
}

metrics() { # metrics.k8s.io, which a HorizontalPodAutoscaler on CPU reads
  part metrics-server --kubeconfig "$D/kubeconfig" --authentication-kubeconfig "$D/kubeconfig" \
    --authorization-kubeconfig "$D/kubeconfig" --cert-dir "$D/pki/metrics" --secure-port 4443 \
    --kubelet-insecure-tls --kubelet-use-node-status-port --kubelet-preferred-address-types InternalIP --metric-resolution 10s --kubelet-request-timeout 5s
  "$K8S" kubectl create -f - >/dev/null <<Y
{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1beta1.metrics.k8s.io},
 spec: {group: metrics.k8s.io, version: v1beta1, groupPriorityMinimum: 100, versionPriority: 100,
  insecureSkipTLSVerify: true, service: {name: metrics, namespace: kube-system, port: 443}}}
---
{apiVersion: v1, kind: Service, metadata: {name: metrics, namespace: kube-system},
 spec: {ports: [{port: 443, targetPort: 4443}]}}
---
{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, addressType: IPv4, ports: [{port: 4443}],
 metadata: {name: metrics, namespace: kube-system, labels: {kubernetes.io/service-name: metrics}},
 endpoints: [{addresses: [$node_ip]}]}
Y
}

init() { # process 1 of the cluster: everything dies with it
  D=$1 mode=$2
  export KUBECONFIG=$D/kubeconfig
  mount --make-rprivate /
  mount -t proc proc /proc
  mount -t tmpfs tmpfs /run
  mount -t sysfs sysfs /sys
  # The machine's cgroup hierarchies again, rooted at this session's own group.
  mount -t tmpfs tmpfs /sys/fs/cgroup
  for c in cpu cpuacct cpuset memory devices freezer blkio pids; do
    mkdir /sys/fs/cgroup/$c
    mount -t cgroup -o $c cgroup /sys/fs/cgroup/$c
  done
  mkdir /sys/fs/cgroup/systemd
  mount -t cgroup -o none,name=systemd cgroup /sys/fs/cgroup/systemd
  mkdir -p "$D/log" /var/lib/kubelet
  mount -t tmpfs tmpfs /var/lib/kubelet
  mount -t tmpfs tmpfs /var/log
  # kubelet wants these kernel settings and would change the whole machine's;
  # a file laid over each one tells it they are as it likes them.
  for wish in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 \
    kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do
    file=/run/wish.$(basename "${wish%=*}")
    echo "${wish#*=}" >"$file"
    mount --bind "$file" "/proc/sys/${wish%=*}"
  done
  echo "nameserver $node_ip" >/run/resolv.conf # the machine's own is out of reach
  mount --bind /run/resolv.conf "$(realpath /etc/resolv.conf)"
  mount --make-rshared /
  network
  identity
  control_plane
  dns
  case $mode in fake) fake_nodes ;; real) real_node ;; esac
  metrics
  touch "$D/ready"
  trap 'exit 0' TERM
  wait
}

case ${1:-} in
up)
  mkdir "$3" # a new folder each time: an old etcd would bring the old objects back
  D=$(cd "$3" && pwd)
  unshare -m -n -p -C -i -u --fork --kill-child "$0" init "$D" "$2" >"$D/init.log" 2>&1 &
  starter=$!
  wait_for 10 pgrep -P $starter
  pgrep -P $starter >"$D/pid"
  disown $starter
  until test -e "$D/ready"; do
    test -d "/proc/$(cat "$D/pid")" || { cat "$D/init.log" >&2; exit 1; }
    sleep 0.2
  done
  wait_for 120 inside "$D" "$K8S" kubectl wait node --all --for=condition=Ready --timeout=1s
  ;;
init) init "$2" "$3" ;;
run) inside "$2" "${@:3}" ;;
load) inside "$2" ctr -a /run/k8s-test/containerd.sock -n k8s.io images import "$3" ;;
down)
  pid=$(cat "$2/pid")
  kill -KILL "$pid"
  wait_for 20 test ! -d "/proc/$pid"
  while IFS=: read -r _ c path; do # its control groups outlive it, empty
    for group in k8s.io kubepods; do
      find "/sys/fs/cgroup/$c${path%/}/$group" -depth -type d -exec rmdir {} + 2>/dev/null || true
    done
  done < <(sed 's/name=//' /proc/self/cgroup)
  ;;
*) sed -n '2,12p' "$0"; exit 2 ;;
esac
