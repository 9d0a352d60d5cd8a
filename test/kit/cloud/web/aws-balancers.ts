import { aws as model } from '../aws/model.ts';
import type { CloudResource, Properties, Testbed } from '../model.ts';
import { withTagList } from './aws-answers.ts';
import { Refused } from './server.ts';

function named(testbed: Testbed, kind: 'LoadBalancer' | 'TargetGroup', name: string | undefined): CloudResource[] {
  const found = testbed
    .all(`aws:lb:${kind}`)
    .filter((one) => one.region === testbed.region && (name === undefined || one.name === name));
  if (found.length === 0 && name !== undefined)
    throw new Refused(400, `${kind}NotFound`, `One or more not found: ${name}`);
  return found;
}

/** What Elastic Load Balancing answers. */
export function describeBalancers(action: string, fields: Record<string, string>, testbed: Testbed): Properties {
  const name = fields['Names.member.1'];
  switch (action) {
    case 'DescribeLoadBalancers':
      return {
        LoadBalancers: named(testbed, 'LoadBalancer', name).map((one) => ({
          LoadBalancerArn: one.id,
          LoadBalancerName: one.name,
        })),
      };
    case 'DescribeTargetGroups':
      return {
        TargetGroups: named(testbed, 'TargetGroup', name).map((one) => ({
          TargetGroupArn: one.id,
          TargetGroupName: one.name,
        })),
      };
    case 'DescribeListeners':
      return {
        Listeners: testbed
          .all('aws:lb:Listener')
          .filter(({ inputs }) => inputs.loadBalancerArn === fields.LoadBalancerArn)
          .map(({ id, inputs }) => ({ ListenerArn: id, Port: inputs.port })),
      };
    case 'DescribeTags': {
      const one = testbed
        .all()
        .find(({ id, type }) => type.startsWith('aws:lb:') && id === fields['ResourceArns.member.1']);
      return {
        TagDescriptions:
          one && Object.keys(model.tags(one)).length > 0 ? [withTagList(one, { ResourceArn: one.id })] : [],
      };
    }
    default:
      throw new Refused(400, 'InvalidAction', `the fake AWS does not know ${action}: add it to web/aws-balancers.ts`);
  }
}
