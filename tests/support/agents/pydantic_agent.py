"""An agent of Pydantic AI, which tells OpenTelemetry what it does once it is asked to."""

import os

from openai import AsyncOpenAI
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

Agent.instrument_all()

client = AsyncOpenAI(base_url=os.environ["MODEL"], api_key="none", max_retries=0)
model = OpenAIChatModel("gpt-x", provider=OpenAIProvider(openai_client=client))
agent = Agent(model, name="order-desk", system_prompt="You help customers.")


@agent.tool_plain
def find_order(order: int) -> str:
    """Tell where an order is."""
    return '{"state": "sent"}'


print(agent.run_sync("Where is my order 4711?").output)
