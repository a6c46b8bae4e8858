"""Between the messages of SkillService and the domain."""
