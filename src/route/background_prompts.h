// What people say to anything that answers: prompts of everyday life, which belong to no route unless one is
// about them.
#pragma once

#include <array>
#include <string_view>

namespace waybill::route {

// Written for this project, over as many subjects as there are lines; nothing that a business is asked in
// particular.
inline constexpr std::array<std::string_view, 52> kBackgroundPrompts = {
    "hello there",
    "good morning, how are you today?",
    "thank you very much",
    "tell me a joke",
    "who are you?",
    "what is the meaning of life?",
    "I am bored, what should I do?",
    "sing me a song",
    "what time is it in Tokyo?",
    "what will the weather be like tomorrow?",
    "set an alarm for seven in the morning",
    "remind me to call my mother on Sunday",
    "what is the capital of Australia?",
    "how many people live on earth?",
    "who won the world cup in 1998?",
    "when did the Roman empire fall?",
    "who was the first president?",
    "how far away is the moon?",
    "why is the sky blue?",
    "how do vaccines work?",
    "what do elephants eat?",
    "what is seventeen times twenty-three?",
    "convert ten miles to kilometres",
    "how do I cook rice?",
    "give me a recipe for pancakes",
    "which wine goes with fish?",
    "recommend a book about whales",
    "what films are on at the cinema tonight?",
    "who plays the main part in that series?",
    "play some quiet music",
    "write a poem about autumn",
    "write a short story about a dragon",
    "translate this sentence into Spanish",
    "how do you spell necessary?",
    "what is another word for happy?",
    "summarise this article in three sentences",
    "plan a weekend trip to Rome",
    "book a table for two tonight",
    "find me a cheap flight to New York",
    "where is the nearest petrol station?",
    "what is the best way to lose weight?",
    "my back hurts, what can I do?",
    "how many calories are in an apple?",
    "my baby does not sleep at night",
    "how do I remove a stain from a shirt?",
    "how often should I water my plants?",
    "my dog keeps barking at the neighbours",
    "how do I change a flat tyre?",
    "what questions are asked in a job interview?",
    "can you explain this to a child?",
    "what should I give my sister for her birthday?",
    "flip a coin"};

}  // namespace waybill::route
