{{/* Names, labels and the parts that every pod shares. */}}

{{- define "fleetbrain.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "fleetbrain.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
app.kubernetes.io/part-of: fleetbrain
{{ include "fleetbrain.selector" . }}
{{- end -}}

{{- define "fleetbrain.selector" -}}
app.kubernetes.io/name: fleetbrain
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "fleetbrain.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion | toString }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "fleetbrain.authSecret" -}}
{{- if .Values.auth.existingSecret -}}
{{ .Values.auth.existingSecret }}
{{- else if .Values.auth.create -}}
{{ include "fleetbrain.fullname" . }}-auth
{{- else -}}
{{- fail "auth.existingSecret: name a Secret that holds the brain's token, or set auth.create=true to have one made" -}}
{{- end -}}
{{- end -}}

{{- define "fleetbrain.natsSecret" -}}
{{- .Values.nats.existingSecret | default (printf "%s-nats" (include "fleetbrain.fullname" .)) -}}
{{- end -}}

{{- define "fleetbrain.port" -}}
{{- get (dict "ingest" 8611 "search" 8612 "graph" 8613 "jobs" 8614 "gateway" 8620) . -}}
{{- end -}}

{{/* Where a service answers: every ready pod behind a headless Service; the client goes round. */}}
{{- define "fleetbrain.address" -}}
{{- printf "dns:///%s-%s.%s.svc.cluster.local:%s" (include "fleetbrain.fullname" .root) .component .root.Release.Namespace (include "fleetbrain.port" .component) -}}
{{- end -}}

{{- define "fleetbrain.natsUrl" -}}
{{- $root := .root -}}
{{- if $root.Values.nats.bundled -}}
{{- $hosts := list -}}
{{- range $i := until (int $root.Values.nats.replicas) -}}
{{- $hosts = append $hosts (printf "%s://%s:$(NATS_PASSWORD)@%s-nats-%d.%s-nats.%s.svc.cluster.local:4222" (ternary "tls" "nats" (ne $root.Values.nats.tls.existingSecret "")) $.component (include "fleetbrain.fullname" $root) $i (include "fleetbrain.fullname" $root) $root.Release.Namespace) -}}
{{- end -}}
{{- join "," $hosts -}}
{{- else -}}
{{- required "nats.url: say where NATS answers, or set nats.bundled=true" $root.Values.nats.url -}}
{{- end -}}
{{- end -}}

{{/* A password or key from a Secret, as a file's worth in the environment. */}}
{{- define "fleetbrain.secretEnv" -}}
- name: {{ .name }}
  valueFrom:
    secretKeyRef: {name: {{ .secret }}, key: {{ .key }}}
{{- end -}}

{{- define "fleetbrain.env" -}}
{{- $root := .root -}}
{{- $c := .component -}}
- {name: FLEETBRAIN_LOG_LEVEL, value: {{ $root.Values.logLevel | quote }}}
- {name: FLEETBRAIN_DATA, value: /data}
{{ include "fleetbrain.secretEnv" (dict "name" "FLEETBRAIN_TOKEN" "secret" (include "fleetbrain.authSecret" $root) "key" $root.Values.auth.key) }}
{{- if eq $c "gateway" }}
- {name: FLEETBRAIN_HTTP, value: "0.0.0.0:8620"}
- name: FLEETBRAIN_HTTP_HOSTS
  value: {{ include "fleetbrain.hosts" $root | quote }}
{{- else }}
- {name: FLEETBRAIN_LISTEN, value: "0.0.0.0:{{ include "fleetbrain.port" $c }}"}
- {name: FLEETBRAIN_HEALTH_LISTEN, value: "0.0.0.0:8619"}
- {name: FLEETBRAIN_METRICS_LISTEN, value: "0.0.0.0:8618"}
{{- if $root.Values.nats.bundled }}
{{ include "fleetbrain.secretEnv" (dict "name" "NATS_PASSWORD" "secret" (include "fleetbrain.natsSecret" $root) "key" (printf "%s-password" $c)) }}
{{- else if $root.Values.nats.existingSecret }}
{{ include "fleetbrain.secretEnv" (dict "name" "NATS_PASSWORD" "secret" $root.Values.nats.existingSecret "key" (printf "%s-password" $c)) }}
{{- end }}
- name: FLEETBRAIN_NATS_URL
  value: {{ include "fleetbrain.natsUrl" . | quote }}
{{- if $root.Values.nats.tls.existingSecret }}
- {name: FLEETBRAIN_NATS_CA, value: /nats-tls/ca.crt}
{{- end }}
{{- end }}
{{- if has $c (list "gateway" "jobs") }}
{{- range $peer := list "ingest" "search" "graph" "jobs" }}
- {name: FLEETBRAIN_{{ upper $peer }}_ADDRESS, value: {{ include "fleetbrain.address" (dict "root" $root "component" $peer) | quote }}}
{{- end }}
{{- end }}
{{- if eq $c "search" }}
- {name: FLEETBRAIN_EMBEDDER_URL, value: {{ $root.Values.embedder.url | quote }}}
{{- with $root.Values.embedder.baseUrl }}
- {name: OPENAI_BASE_URL, value: {{ . | quote }}}
{{- end }}
{{- with $root.Values.embedder.existingSecret }}
{{ include "fleetbrain.secretEnv" (dict "name" "FLEETBRAIN_EMBEDDER_KEY" "secret" . "key" $root.Values.embedder.key) }}
{{- end }}
{{- with include "fleetbrain.lexicalUrl" $root }}
- {name: FLEETBRAIN_LEXICAL_URL, value: {{ . | quote }}}
{{- end }}
{{- with $root.Values.engines.lexical.existingSecret }}
{{ include "fleetbrain.secretEnv" (dict "name" "FLEETBRAIN_LEXICAL_PASSWORD" "secret" . "key" $root.Values.engines.lexical.key) }}
{{- end }}
{{- end }}
{{- if eq $c "graph" }}
{{- with include "fleetbrain.graphUrl" $root }}
- {name: FLEETBRAIN_GRAPH_URL, value: {{ . | quote }}}
{{- end }}
{{- with $root.Values.engines.graph.existingSecret }}
{{ include "fleetbrain.secretEnv" (dict "name" "FLEETBRAIN_GRAPH_PASSWORD" "secret" . "key" $root.Values.engines.graph.key) }}
{{- end }}
{{- end }}
{{- if $root.Values.tls.existingSecret }}
- {name: FLEETBRAIN_TLS_CERTIFICATE, value: /tls/tls.crt}
- {name: FLEETBRAIN_TLS_KEY, value: /tls/tls.key}
- {name: FLEETBRAIN_TLS_CA, value: /tls/ca.crt}
{{- if $root.Values.tls.mutual }}
- {name: FLEETBRAIN_TLS_CLIENTS, value: required}
{{- end }}
{{- end }}
{{- with $root.Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "fleetbrain.lexicalUrl" -}}
{{- if .Values.engines.lexical.url -}}{{ .Values.engines.lexical.url }}
{{- else if .Values.bundled.opensearch.enabled -}}opensearch://{{ include "fleetbrain.fullname" . }}-opensearch:9200
{{- end -}}
{{- end -}}

{{- define "fleetbrain.graphUrl" -}}
{{- if .Values.engines.graph.url -}}{{ .Values.engines.graph.url }}
{{- else if .Values.bundled.neo4j.enabled -}}bolt://{{ include "fleetbrain.fullname" . }}-neo4j:7687
{{- end -}}
{{- end -}}

{{- define "fleetbrain.hosts" -}}
{{- $name := printf "%s-gateway" (include "fleetbrain.fullname" .) -}}
{{- $own := list $name (printf "%s.%s" $name .Release.Namespace) (printf "%s.%s.svc" $name .Release.Namespace) (printf "%s.%s.svc.cluster.local" $name .Release.Namespace) -}}
{{- $ingress := ternary (list .Values.gateway.ingress.host) (list) (and .Values.gateway.ingress.enabled (ne .Values.gateway.ingress.host "")) -}}
{{- concat $own $ingress .Values.hosts | uniq | join "," -}}
{{- end -}}

{{/* What the restricted pod security standard asks for, and a read-only file system. */}}
{{- define "fleetbrain.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "fleetbrain.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{/* The pod of one service. */}}
{{- define "fleetbrain.pod" -}}
{{- $root := .root -}}
{{- $c := .component -}}
{{- $v := get $root.Values $c -}}
metadata:
  labels:
    {{- include "fleetbrain.labels" . | nindent 4 }}
  {{- with $root.Values.podAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  serviceAccountName: {{ include "fleetbrain.fullname" $root }}-{{ $c }}
  automountServiceAccountToken: false
  # Kubernetes would inject a variable for every Service of the namespace; ours are read by name only.
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ $root.Values.terminationGraceSeconds }}
  securityContext:
    {{- include "fleetbrain.podSecurity" $root | nindent 4 }}
  {{- with $root.Values.image.pullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $root.Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with $root.Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $root.Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if $v.topologySpread }}
  topologySpreadConstraints:
    {{- range $key := list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
    - maxSkew: 1
      topologyKey: {{ $key }}
      # Rather two in one zone than one that waits for a zone to come back.
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "fleetbrain.selector" (dict "root" $root "component" $c) | nindent 10 }}
    {{- end }}
  {{- end }}
  containers:
    - name: {{ $c }}
      image: {{ include "fleetbrain.image" $root }}
      imagePullPolicy: {{ $root.Values.image.pullPolicy }}
      args: [--target, {{ $c }}]
      securityContext:
        {{- include "fleetbrain.containerSecurity" $root | nindent 8 }}
      env:
        {{- include "fleetbrain.env" (dict "root" $root "component" $c) | nindent 8 }}
      ports:
        {{- if eq $c "gateway" }}
        - {name: http, containerPort: 8620}
        {{- else }}
        - {name: grpc, containerPort: {{ include "fleetbrain.port" $c }}}
        - {name: health, containerPort: 8619}
        - {name: metrics, containerPort: 8618}
        {{- end }}
      {{- if eq $c "gateway" }}
      startupProbe:
        httpGet: {path: /healthz, port: http}
        periodSeconds: 1
        failureThreshold: 120
      # Ready without the services behind it: a gateway that names what is missing is better than none.
      readinessProbe:
        httpGet: {path: /healthz, port: http}
        periodSeconds: 2
        timeoutSeconds: 2
      livenessProbe:
        httpGet: {path: /healthz, port: http}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      {{- else }}
      # The process is up; catching up with the log may take longer and is readiness's business.
      startupProbe:
        grpc: {port: 8619, service: live}
        periodSeconds: 1
        failureThreshold: 300
      readinessProbe:
        grpc: {port: 8619}
        periodSeconds: 2
        timeoutSeconds: 2
        failureThreshold: 2
      livenessProbe:
        grpc: {port: 8619, service: live}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      {{- end }}
      lifecycle:
        preStop:
          sleep: {seconds: {{ $root.Values.preStopSeconds }}}
      resources:
        {{- toYaml $v.resources | nindent 8 }}
      volumeMounts:
        - {name: data, mountPath: /data}
        - {name: tmp, mountPath: /tmp}
        {{- if $root.Values.tls.existingSecret }}
        - {name: tls, mountPath: /tls, readOnly: true}
        {{- end }}
        {{- if and $root.Values.nats.tls.existingSecret (ne $c "gateway") }}
        - {name: nats-tls, mountPath: /nats-tls, readOnly: true}
        {{- end }}
  volumes:
    - name: tmp
      emptyDir: {sizeLimit: 1Gi}
    {{- if not (hasKey $v "storage") }}
    - name: data
      emptyDir: {sizeLimit: 1Gi}
    {{- end }}
    {{- if $root.Values.tls.existingSecret }}
    - name: tls
      secret: {secretName: {{ $root.Values.tls.existingSecret }}, defaultMode: 0440}
    {{- end }}
    {{- if and $root.Values.nats.tls.existingSecret (ne $c "gateway") }}
    - name: nats-tls
      secret: {secretName: {{ $root.Values.nats.tls.existingSecret }}, defaultMode: 0440}
    {{- end }}
{{- end -}}

{{/* How many: nobody sets `replicas` beside an autoscaler. */}}
{{- define "fleetbrain.replicas" -}}
{{- $v := get .root.Values .component -}}
{{- $keda := and .root.Values.keda.enabled (hasKey .root.Values.keda .component) (dig .component "enabled" false .root.Values.keda) -}}
{{- if not (or $v.autoscaling.enabled $keda) }}
replicas: {{ $v.replicas }}
{{- end -}}
{{- end -}}

{{/* A stateless service: Deployment. */}}
{{- define "fleetbrain.deployment" -}}
{{- $root := .root -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "fleetbrain.fullname" $root }}-{{ .component }}
  labels:
    {{- include "fleetbrain.labels" . | nindent 4 }}
spec:
  {{- include "fleetbrain.replicas" . | nindent 2 }}
  selector:
    matchLabels:
      {{- include "fleetbrain.selector" . | nindent 6 }}
  strategy:
    # One more before one less: no call meets an empty Service.
    rollingUpdate: {maxSurge: 1, maxUnavailable: 0}
  template:
    {{- include "fleetbrain.pod" . | nindent 4 }}
{{- end -}}

{{/* A service with a store for each replica: StatefulSet. */}}
{{- define "fleetbrain.statefulset" -}}
{{- $root := .root -}}
{{- $v := get $root.Values .component -}}
apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: {{ include "fleetbrain.fullname" $root }}-{{ .component }}
  labels:
    {{- include "fleetbrain.labels" . | nindent 4 }}
spec:
  {{- include "fleetbrain.replicas" . | nindent 2 }}
  serviceName: {{ include "fleetbrain.fullname" $root }}-{{ .component }}
  podManagementPolicy: Parallel
  # An index can be built anew, so a volume goes with its replica; the log never lies on one of these.
  persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete, whenScaled: Delete}
  selector:
    matchLabels:
      {{- include "fleetbrain.selector" . | nindent 6 }}
  template:
    {{- include "fleetbrain.pod" . | nindent 4 }}
  volumeClaimTemplates:
    - metadata: {name: data}
      spec:
        accessModes: [ReadWriteOnce]
        {{- with $v.storage.className }}
        storageClassName: {{ . }}
        {{- end }}
        resources: {requests: {storage: {{ $v.storage.size }}}}
{{- end -}}

{{/* What goes with every service: its Service, its account, a budget, its autoscaler. */}}
{{- define "fleetbrain.around" -}}
{{- $root := .root -}}
{{- $c := .component -}}
{{- $v := get $root.Values $c -}}
{{- $name := printf "%s-%s" (include "fleetbrain.fullname" $root) $c -}}
{{- if ne $c "gateway" }}
---
apiVersion: v1
kind: Service
metadata:
  name: {{ $name }}
  labels:
    {{- include "fleetbrain.labels" . | nindent 4 }}
spec:
  # Headless: gRPC keeps its connections, so the client must see every pod to go round.
  clusterIP: None
  selector:
    {{- include "fleetbrain.selector" . | nindent 4 }}
  ports:
    - {name: grpc, port: {{ include "fleetbrain.port" $c }}, targetPort: grpc}
{{- end }}
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ $name }}
  labels:
    {{- include "fleetbrain.labels" . | nindent 4 }}
# Nothing of ours speaks to the API server.
automountServiceAccountToken: false
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ $name }}
  labels:
    {{- include "fleetbrain.labels" . | nindent 4 }}
spec:
  maxUnavailable: 1
  # A pod that is not ready helps nobody; it must not keep a node from being drained.
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      {{- include "fleetbrain.selector" . | nindent 6 }}
{{- if $v.autoscaling.enabled }}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  name: {{ $name }}
  labels:
    {{- include "fleetbrain.labels" . | nindent 4 }}
spec:
  scaleTargetRef:
    apiVersion: apps/v1
    kind: {{ hasKey $v "storage" | ternary "StatefulSet" "Deployment" }}
    name: {{ $name }}
  minReplicas: {{ $v.autoscaling.minReplicas }}
  maxReplicas: {{ $v.autoscaling.maxReplicas }}
  metrics:
    - type: Resource
      resource: {name: cpu, target: {type: Utilization, averageUtilization: {{ $v.autoscaling.cpu }}}}
    {{- with $v.autoscaling.lag }}
    # Served by a metrics adapter from the pods' own /metrics.
    - type: Pods
      pods: {metric: {name: brain_projection_pending}, target: {type: AverageValue, averageValue: {{ . | quote }}}}
    {{- end }}
{{- end }}
{{- end -}}
