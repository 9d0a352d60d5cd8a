import * as ec2 from '@pulumi/aws/ec2/index.js';
import * as lb from '@pulumi/aws/lb/index.js';
import type { EndpointInputs } from '../../cloud.ts';
import { physicalName } from '../names.ts';
import { followHouseRules } from './house-rules.ts';

const ANYWHERE = ['0.0.0.0/0'];
/** Seconds that a deregistered machine keeps its connections. Watches are long-lived; clients reconnect. */
const LEAVING_SECONDS = 30;

/**
 * Layer `endpoint`: a network load balancer with a permanent name, and the security group by which machines reach each
 * other.
 */
export function endpoint({ owner, network, port }: EndpointInputs) {
  followHouseRules(owner);
  const wall = (part: string, args: Omit<ec2.SecurityGroupArgs, 'name' | 'vpcId'>) =>
    new ec2.SecurityGroup(part, {
      name: physicalName('aws:ec2/securityGroup:SecurityGroup', owner, part),
      vpcId: network.network,
      ...args,
    });
  const tcp = { protocol: 'tcp', fromPort: port, toPort: port };
  const anywhere = { protocol: '-1', fromPort: 0, toPort: 0, cidrBlocks: ANYWHERE, description: 'anywhere' };
  const door = wall('endpoint', {
    description: `Coppice: load balancer of ${owner.technicalID}`,
    ingress: [{ ...tcp, cidrBlocks: ANYWHERE, description: 'clients of the API server' }],
    egress: [{ ...tcp, cidrBlocks: ANYWHERE, description: 'API servers' }],
  });
  const among = wall('cluster', {
    description: `Coppice: all machines of ${owner.technicalID}`,
    ingress: [
      { protocol: '-1', fromPort: 0, toPort: 0, self: true, description: 'machines of the cluster' },
      { ...tcp, securityGroups: [door.id], description: 'load balancer to API servers' },
    ],
    egress: [anywhere],
  });
  const balancer = new lb.LoadBalancer('endpoint', {
    name: physicalName('aws:lb/loadBalancer:LoadBalancer', owner),
    loadBalancerType: 'network',
    internal: false,
    subnets: (network.extra?.publicSubnets ?? '').split(',').filter(Boolean),
    securityGroups: [door.id],
    // A single machine in one zone serves all: otherwise addresses of other zones would be dead.
    enableCrossZoneLoadBalancing: true,
  });
  const targets = new lb.TargetGroup('endpoint', {
    name: physicalName('aws:lb/targetGroup:TargetGroup', owner),
    vpcId: network.network,
    targetType: 'instance',
    protocol: 'TCP',
    port,
    // A machine that reaches its own API server through the load balancer would receive its own packets ("hairpin",
    // ELB user guide).
    preserveClientIp: 'false',
    deregistrationDelay: LEAVING_SECONDS,
    healthCheck: { protocol: 'HTTPS', path: '/readyz', interval: 10, healthyThreshold: 2, unhealthyThreshold: 2 },
  });
  new lb.Listener('endpoint', {
    loadBalancerArn: balancer.arn,
    protocol: 'TCP',
    port,
    defaultActions: [{ type: 'forward', targetGroupArn: targets.arn }],
  });
  return { host: balancer.dnsName, port, extra: { securityGroup: among.id, targetGroup: targets.arn } };
}
