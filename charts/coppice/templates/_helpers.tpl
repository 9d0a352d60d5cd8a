{{- define "coppice.labels" -}}
app.kubernetes.io/name: coppice
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* Of pods that are no operator: a name of their own, so that no Service, budget or policy of the operator takes them for one. */}}
{{- define "coppice.jobLabels" -}}
app.kubernetes.io/name: coppice-job
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "coppice.image" -}}
{{ .Values.image.repository }}{{ if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{/* What the Pod Security Standard "restricted" asks of a pod and of a container, and a root file system that nobody writes to. */}}
{{- define "coppice.podSecurity" -}}
{runAsNonRoot: true, runAsUser: 65532, runAsGroup: 65532, fsGroup: 65532, seccompProfile: {type: RuntimeDefault}}
{{- end }}

{{- define "coppice.containerSecurity" -}}
{allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
{{- end }}

{{/* A Job of the operator's image that Helm runs at a moment of a release, with a ServiceAccount and rights of its own: name, moments, task, tries. */}}
{{- define "coppice.job" -}}
{{- $root := index . 0 -}}{{- $job := index . 1 -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ $job.name }}
  namespace: {{ $root.Release.Namespace }}
  labels: {{- include "coppice.jobLabels" $root | nindent 4 }}
  annotations:
    helm.sh/hook: {{ $job.moments }}
    helm.sh/hook-weight: '-10'
    helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ $job.name }}
  labels: {{- include "coppice.jobLabels" $root | nindent 4 }}
  annotations:
    helm.sh/hook: {{ $job.moments }}
    helm.sh/hook-weight: '-5'
    helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {{ $job.name }}}
subjects:
  - {kind: ServiceAccount, name: {{ $job.name }}, namespace: '{{ $root.Release.Namespace }}'}
---
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ $job.name }}
  namespace: {{ $root.Release.Namespace }}
  labels: {{- include "coppice.jobLabels" $root | nindent 4 }}
  annotations:
    helm.sh/hook: {{ $job.moments }}
    helm.sh/hook-weight: '0'
    helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
    # Helm prints what the Job said when it fails.
    helm.sh/hook-output-log-policy: hook-failed
spec:
  backoffLimit: {{ $job.retries }}
  activeDeadlineSeconds: 300
  template:
    metadata:
      labels: {{- include "coppice.jobLabels" $root | nindent 8 }}
    spec:
      restartPolicy: Never
      serviceAccountName: {{ $job.name }}
      securityContext: {{ include "coppice.podSecurity" $root }}
      imagePullSecrets: {{ toJson $root.Values.image.pullSecrets }}
      containers:
        - name: {{ $job.task }}
          image: '{{ include "coppice.image" $root }}'
          imagePullPolicy: {{ $root.Values.image.pullPolicy }}
          command: [node]
          args: [operator/chart/main.ts, {{ $job.task }}]
          terminationMessagePolicy: FallbackToLogsOnError
          securityContext: {{ include "coppice.containerSecurity" $root }}
          resources: {{ toJson $root.Values.jobs.resources }}
          volumeMounts: [{name: tmp, mountPath: /tmp}]
      volumes: [{name: tmp, emptyDir: {sizeLimit: 64Mi}}]
      nodeSelector: {{ toJson $root.Values.nodeSelector }}
      tolerations: {{ toJson $root.Values.tolerations }}
{{- end }}
