{{- define "skidder.name" -}}
{{- default .Release.Name .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "skidder.account" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "skidder.name" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* Never changed: a DaemonSet's selector cannot be. */}}
{{- define "skidder.selector" -}}
app.kubernetes.io/name: skidder
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{- define "skidder.labels" -}}
{{ include "skidder.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}
