"""An agent of OpenAI's SDK for agents that knows nothing of what watches it."""

import asyncio
import os

from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool
from openai import AsyncOpenAI


@function_tool
def find_order(order: int) -> str:
    """Tell where an order is."""
    return '{"state": "sent"}'


client = AsyncOpenAI(base_url=os.environ["MODEL"], api_key="none", max_retries=0)
model = OpenAIChatCompletionsModel(model="gpt-x", openai_client=client)
agent = Agent("order-desk", instructions="You help customers.", model=model, tools=[find_order])
said = asyncio.run(Runner.run(agent, "Where is my order 4711?"))
print(said.final_output)
