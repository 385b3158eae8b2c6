{{/* The configuration of the bundled NATS. */}}
{{- define "fleetbrain.natsConfig" -}}
{{- $name := printf "%s-nats" (include "fleetbrain.fullname" .) -}}
server_name: $POD_NAME
port: 4222
http_port: 8222
pid_file: /data/nats.pid
max_payload: 8388608
lame_duck_grace_period: 3s
# The shortest that the server takes; the pods' grace period is longer.
lame_duck_duration: 30s
jetstream {
  store_dir: /data
  max_file_store: {{ include "fleetbrain.natsStore" . }}
  {{- if gt (int .Values.nats.replicas) 1 }}
  # Three copies on three machines: a power cut of one loses nothing that was acknowledged.
  sync_interval: {{ .Values.nats.syncInterval }}
  {{- else }}
  sync_interval: always
  {{- end }}
}
{{- with .Values.nats.tls.existingSecret }}
tls {
  cert_file: /nats-tls/tls.crt
  key_file: /nats-tls/tls.key
  ca_file: /nats-tls/ca.crt
  timeout: 5
}
{{- end }}
{{ .Files.Get "files/nats-accounts.conf" }}
{{- if gt (int .Values.nats.replicas) 1 }}
cluster {
  name: {{ $name }}
  port: 6222
  authorization {user: cluster, password: $NATS_CLUSTER_PASSWORD, timeout: 5}
  no_advertise: true
  {{- with .Values.nats.tls.existingSecret }}
  tls {
    cert_file: /nats-tls/tls.crt
    key_file: /nats-tls/tls.key
    ca_file: /nats-tls/ca.crt
    timeout: 5
  }
  {{- end }}
}
{{- end }}
{{- end -}}

{{/* 18Gi as NATS writes it: 18GiB. */}}
{{- define "fleetbrain.natsStore" -}}
{{- printf "%sB" .Values.nats.maxStore -}}
{{- end -}}

{{/* Four fifths of the limit, in MiB, for Go. */}}
{{- define "fleetbrain.natsMemory" -}}
{{- $limit := .Values.nats.resources.limits.memory -}}
{{- $mib := 0 -}}
{{- if hasSuffix "Gi" $limit -}}{{- $mib = mulf 1024 (trimSuffix "Gi" $limit | float64) | int -}}
{{- else -}}{{- $mib = trimSuffix "Mi" $limit | int -}}
{{- end -}}
{{- printf "%dMiB" (div (mul $mib 4) 5) -}}
{{- end -}}

{{/* The other servers, with the password that the config file cannot put into an address; Kubernetes fills it in. */}}
{{- define "fleetbrain.natsRoutes" -}}
{{- $name := printf "%s-nats" (include "fleetbrain.fullname" .) -}}
{{- $routes := list -}}
{{- range $i := until (int .Values.nats.replicas) -}}
{{- $routes = append $routes (printf "nats://cluster:$(NATS_CLUSTER_PASSWORD)@%s-%d.%s.%s.svc.cluster.local:6222" $name $i $name $.Release.Namespace) -}}
{{- end -}}
{{- join "," $routes -}}
{{- end -}}
