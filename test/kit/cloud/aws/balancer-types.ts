import { digits } from '../digits.ts';
import type { CloudResource, ResourceType } from '../model.ts';
import { arn, list, simple } from './naming.ts';

const numberOf = ({ uid }: Pick<CloudResource, 'uid'>): string => digits(16, uid, 'balancer');

const balancerArn = (one: Pick<CloudResource, 'uid' | 'region' | 'account' | 'name'>): string =>
  arn(one, 'elasticloadbalancing', `loadbalancer/net/${one.name}/${numberOf(one)}`);
const targetsArn = (one: Pick<CloudResource, 'uid' | 'region' | 'account' | 'name'>): string =>
  arn(one, 'elasticloadbalancing', `targetgroup/${one.name}/${numberOf(one)}`);

/** Elastic Load Balancing's (v2): ids are ARNs. */
export const balancerTypes: ResourceType[] = [
  simple('aws:lb:LoadBalancer', {
    nameInput: 'name',
    immutable: ['name', 'namePrefix', 'loadBalancerType', 'internal'],
    id: balancerArn,
    uniqueBy: (inputs) => inputs.name,
    outputs: (balancer, testbed) => ({
      arn: balancer.id,
      // What a test has put behind it is reached by an address, since its names are in no resolver.
      dnsName:
        URL.parse(testbed.endpoint(balancer)?.endpoint ?? '')?.hostname ??
        `${balancer.name}-${numberOf(balancer)}.elb.${balancer.region}.amazonaws.com`,
    }),
    references: (inputs) => [
      ...list(inputs.subnets).map((handle) => ({ type: 'aws:ec2:Subnet', handle })),
      ...list(inputs.securityGroups).map((handle) => ({ type: 'aws:ec2:SecurityGroup', handle })),
    ],
  }),
  simple('aws:lb:TargetGroup', {
    nameInput: 'name',
    immutable: ['name', 'namePrefix', 'port', 'protocol', 'targetType', 'vpcId'],
    id: targetsArn,
    uniqueBy: (inputs) => inputs.name,
    outputs: (group) => ({ arn: group.id }),
    references: (inputs) => [{ type: 'aws:ec2:Vpc', handle: inputs.vpcId }],
  }),
  simple('aws:lb:Listener', {
    immutable: ['loadBalancerArn'],
    id: (listener) =>
      `${String(listener.inputs.loadBalancerArn).replace(':loadbalancer/', ':listener/')}/${numberOf(listener)}`,
    uniqueBy: (inputs) => `${inputs.loadBalancerArn}|${inputs.port}`,
    outputs: (listener) => ({ arn: listener.id }),
    references: (inputs) => [
      { type: 'aws:lb:LoadBalancer', handle: inputs.loadBalancerArn, onDelete: 'cascade' },
      ...list(inputs.defaultActions).map(({ targetGroupArn }) => ({
        type: 'aws:lb:TargetGroup',
        handle: targetGroupArn,
      })),
    ],
  }),
];
