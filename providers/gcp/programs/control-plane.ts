import { gzipSync } from 'node:zlib';
import { BackendService, GlobalForwardingRule, HealthCheck, TargetTCPProxy } from '@pulumi/gcp/compute/index.js';
import * as pulumi from '@pulumi/pulumi';
import type { ControlPlaneInputs } from '../../cloud.ts';
import type { ProgramOutputs } from '../../pulumi/program.ts';
import { descriptionOf, gcpLabelsOf } from '../labels.ts';
import { computeName } from '../names.ts';
import { instanceGroup, instanceTemplate } from './machines.ts';

/** Name of the API servers' port in the group. */
const PORT_NAME = 'api-server';
/** Watches may be silent for minutes; the proxy closes connections idle for longer than this. */
const IDLE_SECONDS = 3600;
const SCHEME = 'EXTERNAL_MANAGED';

/**
 * Layer `control-plane`: a regional managed instance group of stateful machines, which only Coppice adds and removes,
 * with the load balancer in front. The load balancer is a proxy: behind a passthrough load balancer a machine reaches
 * only itself at the balancer's address.
 */
export function controlPlane({ owner, region, zones, network, endpoint, pool }: ControlPlaneInputs): ProgramOutputs {
  const description = descriptionOf(owner);
  const name = computeName(owner, 'control-plane');
  const { port } = endpoint;
  // cloud-init decompresses it. It is a secret in Pulumi's state, since it may contain keys.
  const told = {
    'user-data': pulumi.secret(gzipSync(pool.userData).toString('base64')),
    'user-data-encoding': 'base64',
  };
  const made = instanceTemplate({ owner, network }, pool, endpoint.extra.serviceAccount!, told);
  const machines = instanceGroup({ owner, region, zones }, pool, made, {
    namedPorts: [{ name: PORT_NAME, port }],
    // An etcd member is removed before its machine, and only Coppice knows when that is done.
    instanceLifecyclePolicy: { defaultActionOnFailure: 'DO_NOTHING' },
  });
  const health = new HealthCheck('control-plane', {
    name,
    description,
    checkIntervalSec: 5,
    timeoutSec: 5,
    httpsHealthCheck: { port, requestPath: '/readyz' },
  });
  const backend = new BackendService('control-plane', {
    name,
    description,
    loadBalancingScheme: SCHEME,
    protocol: 'TCP',
    portName: PORT_NAME,
    timeoutSec: IDLE_SECONDS,
    healthChecks: health.id,
    backends: [{ group: machines.instanceGroup, balancingMode: 'UTILIZATION' }],
  });
  const proxy = new TargetTCPProxy('control-plane', { name, description, backendService: backend.id });
  new GlobalForwardingRule('control-plane', {
    name,
    description,
    labels: gcpLabelsOf(owner),
    loadBalancingScheme: SCHEME,
    ipProtocol: 'TCP',
    ipAddress: endpoint.extra.address ?? '',
    portRange: String(port),
    target: proxy.id,
  });
  return { group: machines.name };
}
