/** The services that pages call. Only their types are imported: no generated code is loaded. */

import type {
  AdminService,
  AlertService,
  CausalService,
  ContextService,
  EventService,
  LearningService,
  LearnService,
  MemoryService,
  OperationService,
  ProofService,
  RecallService,
  ReflectService,
  SkillService,
} from "@mneme/client/http";
import { service } from "./rpc";

export const admin = service<typeof AdminService>("AdminService");
export const alerts = service<typeof AlertService>("AlertService");
export const causal = service<typeof CausalService>("CausalService");
export const context = service<typeof ContextService>("ContextService");
export const events = service<typeof EventService>("EventService");
export const learn = service<typeof LearnService>("LearnService");
export const learning = service<typeof LearningService>("LearningService");
export const memories = service<typeof MemoryService>("MemoryService");
export const operations = service<typeof OperationService>("OperationService");
export const proof = service<typeof ProofService>("ProofService");
export const recall = service<typeof RecallService>("RecallService");
export const reflect = service<typeof ReflectService>("ReflectService");
export const skills = service<typeof SkillService>("SkillService");
